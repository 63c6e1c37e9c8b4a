"""A bucket's way from the GPU to the next node: with GPUDirect RDMA, by way of the host, and over a shared fabric."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.fabric import ring_rate
from utils.theory.host_path import Stage, stages, sustained, way_seconds
from utils.theory.links import LinkSpec
from utils.theory.units import GB, format_bytes
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.infra_bars import Look, Row, draw_key, draw_rows
from utils.views.palette import BUFFERS, COMMUNICATION, SMALL, TITLE, paler
from utils.views.ring_cost import time_text

HEIGHT = 310
PCIE = Look("PCIe: GPU to host", paler(COMMUNICATION.colour, 0.45))
COPY = Look("copy in the host's memory", BUFFERS.colour, hatched=True)
NETWORK = Look("network", COMMUNICATION.colour)
WAYS = ("GPUDirect RDMA", "page-locked memory", "pageable memory")


@dataclass(frozen=True)
class Question:
    """size: bytes of a bucket. piece: bytes that go on at once; None for all. host_copy: bytes per second.

    network: what a GPU has of the node's cards; pcie: its slot. nodes, per_leaf, oversubscription, placement: of the
    fabric, by which a ring through all nodes gets less than the network's rate.
    """

    size: float
    network: LinkSpec
    pcie: LinkSpec
    host_copy: float
    piece: float | None
    nodes: int
    per_leaf: int
    oversubscription: float
    placement: str

    @property
    def rate(self) -> float:
        """Bytes per second that the fabric leaves of the network's."""
        return ring_rate(self.network.one_way, self.nodes, self.per_leaf, self.oversubscription, self.placement)

    def way(self, name: str) -> tuple[Stage, ...]:
        """The stretches of one of `WAYS`."""
        copy = self.host_copy if name == "pageable memory" else None
        return stages(self.rate, self.pcie.one_way, name == "GPUDirect RDMA", copy)

    def seconds(self, name: str) -> float:
        return way_seconds(self.size, self.way(name), self.piece)

    def sustained(self, name: str) -> float:
        """Bytes per second of a long transfer."""
        return sustained(self.way(name), in_pieces=self.piece is not None)


def way_words(question: Question) -> str:
    """Times and rates of the three ways, and what the fabric takes."""
    asked = question
    ways = "; ".join(
        f"{name} {time_text(asked.seconds(name))}, {asked.sustained(name) / GB:.3g} GB/s sustained" for name in WAYS
    )
    pieces = "in one piece" if asked.piece is None else f"in pieces of {_size(asked.piece)}"
    left = asked.rate / asked.network.one_way
    return (
        f"{_size(asked.size)} {pieces} over {asked.network.name}: {ways}. {asked.nodes:,} nodes, {asked.per_leaf} at a "
        f"leaf, oversubscribed {asked.oversubscription:g} : 1, a ring placed {asked.placement}: the fabric leaves "
        f"{100 * left:.3g} % of the network's rate."
    )


def way_scene(question: Question) -> Scene:
    """The stretches of each way as bars; in pieces they lie over each other in time, one below the other."""
    asked, scene = question, Scene()
    scene.write(16, 20, f"From the GPU to the next node: {_size(asked.size)}", TITLE, align="left", bold=True)
    fabric = f"{asked.network.name}, of which the fabric leaves {100 * asked.rate / asked.network.one_way:.3g} %"
    scene.write(16, 42, fabric, SMALL, align="left")
    draw_key(scene, 16, 66, (PCIE, COPY, NETWORK))
    rows = []
    for name in WAYS:
        total, begin = asked.seconds(name), 0.0
        way = asked.way(name)
        first = asked.size if asked.piece is None else min(asked.size, asked.piece)
        for number, stage in enumerate(way):
            last = number == len(way) - 1
            look = NETWORK if last else PCIE if number == 0 else COPY
            takes = total - begin if last else _stretch(asked, way[: number + 1], begin)
            said = time_text(total) if last else ""
            rows.append(Row(name if number == 0 else "", ((look, takes),), said, begin=begin))
            begin += first / stage.rate
    draw_rows(scene, rows, 172, 92, WIDTH - 172 - 90, pitch=34, height=20)
    return scene


def _stretch(asked: Question, way: tuple[Stage, ...], begin: float) -> float:
    """From the first byte on the last of these stretches to the last one off it."""
    return way_seconds(asked.size, way, asked.piece) - begin


def _size(size: float) -> str:
    return format_bytes(size, binary=False)
