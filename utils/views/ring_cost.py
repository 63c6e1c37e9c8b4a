"""What an all-reduce costs: the time of a ring and of a tree, and the two bandwidths beside the link's rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from utils.theory.links import AlphaBeta, LinkSpec
from utils.theory.ring import RingCost, ring_cost
from utils.theory.units import GB, format_bytes
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.palette import COMMUNICATION, FAINT, INK, LABEL, PAPER, SMALL, TITLE, paler

HEIGHT = 330
_LEFT, _BAR, _PITCH = 96, 26, 42
_LATENCY = paler(COMMUNICATION.colour, 0.4)


@dataclass(frozen=True)
class Question:
    """What does an all-reduce of S = `total_bytes` cost? name: of what is reduced. alpha: seconds of latency."""

    name: str
    total_bytes: float
    world_size: int
    link: LinkSpec
    alpha: float

    @cached_property
    def cost(self) -> RingCost:
        """By a ring of such links."""
        return ring_cost(self.total_bytes, self.world_size, AlphaBeta(self.alpha, 1 / self.link.one_way))


def ring_cost_words(question: Question) -> str:
    """Bytes, seconds, bandwidths and buffer memory, and which algorithm is faster, in words."""
    cost = question.cost
    faster = "the ring is faster" if cost.seconds <= cost.tree_seconds else "the tree is faster"
    above = f" (the ring is from {_size(cost.crossover)} up)" if cost.crossover else ""
    return (
        f"{question.name}, S = {_size(cost.total_bytes)}, in a ring of {cost.world_size:,} ranks over "
        f"{question.link.name} ({_rate(question.link.one_way)} one way), latency {time_text(question.alpha)} a "
        f"message: each rank sends, and receives, {_size(cost.sent)} in {cost.steps:,} steps. "
        f"{time_text(cost.seconds)}, of which {time_text(cost.latency_seconds)} latency. algbw {_rate(cost.algbw)}, "
        f"busbw {_rate(cost.busbw)}. Buffer for what arrives: {_size(cost.buffer)}. A tree takes "
        f"{time_text(cost.tree_seconds)}: {faster}{above}."
    )


def ring_cost_scene(question: Question) -> Scene:
    """The same as a picture: times above, bandwidths below."""
    cost, scene = question.cost, Scene()
    scene.write(16, 20, f"{question.name}: all-reduce of {_size(cost.total_bytes)}", TITLE, align="left", bold=True)
    scene.write(
        16, 42, f"{cost.world_size:,} ranks, {question.link.name}, per {question.link.per}", SMALL, align="left"
    )
    _draw_times(scene, cost, 62)
    _draw_rates(scene, question, 204)
    return scene


def _draw_times(scene: Scene, cost: RingCost, top: float) -> None:
    tree_latency = cost.link.alpha * 2 * (cost.world_size - 1).bit_length()
    rows = (("ring", cost.latency_seconds, cost.seconds), ("tree", tree_latency, cost.tree_seconds))
    longest = max(total for _, _, total in rows) or 1.0
    scene.box(_LEFT, top, 12, 12, _LATENCY, edge=INK, hatched=True)
    scene.write(_LEFT + 18, top + 6, "latency: steps times alpha", SMALL, align="left")
    scene.box(_LEFT + 232, top, 12, 12, COMMUNICATION.colour, edge=INK)
    scene.write(_LEFT + 250, top + 6, "bytes: sent bytes times beta", SMALL, align="left")
    for row, (name, latency, total) in enumerate(rows):
        y = top + 24 + row * _PITCH
        scene.write(_LEFT - 10, y + _BAR / 2, name, LABEL, align="right")
        scale = (WIDTH - _LEFT - 190) / longest
        scene.box(_LEFT, y, scale * latency, _BAR, _LATENCY, edge=INK, hatched=True)
        scene.box(_LEFT + scale * latency, y, scale * (total - latency), _BAR, COMMUNICATION.colour, edge=INK)
        scene.write(_LEFT + scale * total + 8, y + _BAR / 2, time_text(total), LABEL, align="left")


def _draw_rates(scene: Scene, question: Question, top: float) -> None:
    cost, rate = question.cost, question.link.one_way
    scale = (WIDTH - _LEFT - 190) / rate
    for row, (name, value, fill) in enumerate(
        (("algbw", cost.algbw, PAPER), ("busbw", cost.busbw, COMMUNICATION.colour))
    ):
        y = top + row * _PITCH
        scene.write(_LEFT - 10, y + _BAR / 2, name, LABEL, align="right")
        scene.box(_LEFT, y, scale * value, _BAR, fill, edge=INK)
        scene.write(_LEFT + scale * max(value, rate) + 8, y + _BAR / 2, _rate(value), LABEL, align="left")
    right, foot = _LEFT + scale * rate, top + 2 * _PITCH
    scene.line(right, top - 8, right, foot, INK, 1.6)
    scene.write(right, foot + 12, f"the link's rate, {_rate(rate)}", SMALL)
    scene.line(_LEFT, top - 8, _LEFT, foot, FAINT)


def time_text(seconds: float) -> str:
    """Three digits and a unit: "12.3 µs", "4.56 ms", "789 s"."""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"


def _size(size: float) -> str:
    """In powers of ten, as bandwidths are written."""
    return format_bytes(size, binary=False)


def _rate(rate: float) -> str:
    return f"{rate / GB:,.3g} GB/s"
