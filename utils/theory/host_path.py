"""A gradient's way from a GPU to the network: with GPUDirect RDMA, or by way of the host's memory.

With it the network card reads the GPU's memory over PCIe: one stage. Without it the GPU first copies into the host's
memory, and the card reads it from there; from ordinary (pageable) memory there is a copy by a CPU between the two. A
stage has a rate. Whole messages go through one stage after the other, so that times add up; pieces overlap, and then
the slowest stage decides.

Source: NVIDIA, "GPUDirect RDMA", developer documentation, overview; NCCL cuts what it sends into pieces (its "chunks")
and copies into page-locked buffers where there is no GPUDirect RDMA (src/transport/net.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.theory.arguments import check_all, check_amount, check_text, check_yes_or_no
from utils.theory.units import plain, shown


@dataclass(frozen=True)
class Stage:
    """One stretch of the way. rate: bytes per second."""

    name: str
    rate: float

    def __post_init__(self) -> None:
        check_text("name", self.name, "what a stretch of the way is called")
        check_amount("rate", self.rate, "bytes per second", "such as 50e9")


def stages(network: float, pcie: float, direct: bool, host_copy: float | None = None) -> tuple[Stage, ...]:
    """The stretches of a gradient's way out of a node.

    network: bytes per second of the GPU's part of the node's cards. pcie: of the GPU's slot, one way.
    direct: GPUDirect RDMA. host_copy: without it, the rate of one more copy from place to place in the host's memory,
    as `runtime.host_copy` measures it; None where the GPU's copy goes into page-locked memory, which the card reads.
    """
    check_amount("network", network, "bytes per second of the network", "such as 50e9")
    check_amount("pcie", pcie, "bytes per second of the GPU's slot, one way", "such as 63e9")
    check_yes_or_no("direct", direct)
    network, pcie = float(network), float(pcie)
    if direct:
        return (Stage("GPU to network, over PCIe", min(network, pcie)),)
    copies = (Stage("copy in the host's memory", host_copy),) if host_copy is not None else ()
    return (Stage("GPU to host, over PCIe", pcie), *copies, Stage("host to network", min(network, pcie)))


def way_seconds(size: float, way: Sequence[Stage], piece: float | None = None) -> float:
    """Seconds from the first byte's start to the last byte's arrival.

    piece: bytes that go to the next stage as soon as they are through one; None: the whole goes at once. In pieces the
    first one passes all stages, and the others follow at the rate of the slowest.
    """
    check_amount("size", size, "a size in bytes", "such as 25e6")
    way = check_all("way", way, Stage, "as `stages` gives them")
    if not way:
        raise ValueError(f"way is {shown(way)}; give at least one stage")
    whole = plain(size)
    if piece is not None:
        check_amount("piece", piece, "the bytes of a piece", "such as 512e3")
    first = min(whole, whole if piece is None else plain(piece))
    slowest = min(stage.rate for stage in way)
    return sum(first / stage.rate for stage in way) + (whole - first) / slowest


def sustained(way: Sequence[Stage], in_pieces: bool = True) -> float:
    """Bytes per second of a long transfer: the slowest stage's rate in pieces; else 1 / (sum of 1 / rate)."""
    way = check_all("way", way, Stage, "as `stages` gives them")
    if not way:
        raise ValueError(f"way is {shown(way)}; give at least one stage")
    return min(stage.rate for stage in way) if in_pieces else 1 / sum(1 / stage.rate for stage in way)
