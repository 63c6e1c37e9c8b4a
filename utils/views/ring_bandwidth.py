"""Bandwidth of an all-reduce against its size: measured points, the law's line, and the link's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from utils.theory.links import AlphaBeta
from utils.theory.ring import ring_cost
from utils.theory.traffic import algorithm_bandwidth, bus_bandwidth
from utils.theory.units import GB, format_bytes
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, PAPER, SMALL, TITLE

HEIGHT = 400
_LEFT, _RIGHT, _TOP, _FOOT = 84, WIDTH - 24, 84, 344
_POINT = 9  # pixels
_BENDS = 60  # points of the law's curve

Points = Sequence[tuple[float, float]]  # (S in bytes, seconds)


def bandwidth_picture(points: Points, world_size: int, link: AlphaBeta, title: str) -> Picture:
    """busbw (filled) and algbw (empty) of measured all-reduces on `world_size` ranks, both axes logarithmic.

    points: measured (S, seconds) of at least two sizes. link: alpha and beta that were set or measured beforehand; the
    line is the ring's busbw by them, and its ceiling 1 / beta is the link's rate.
    Raises ValueError for fewer than two sizes, and as `theory.ring.ring_cost` does.
    """
    board = Board(HEIGHT, WIDTH)
    board.show(bandwidth_scene(points, world_size, link, title))
    return Picture(board.figure, bandwidth_words(points, world_size, link, title))


def bandwidth_words(points: Points, world_size: int, link: AlphaBeta, title: str) -> str:
    """The picture in words: at each size, busbw by the law and as measured, as shares of the link's rate."""
    parts = [
        f"{format_bytes(size)}: predicted {ring_cost(size, world_size, link).busbw / link.bandwidth:.2f}, measured "
        f"{bus_bandwidth('all_reduce', size, world_size, seconds) / link.bandwidth:.2f}"
        for size, seconds in points
    ]
    return f"{title}: busbw on {world_size} ranks as a share of the link's {_rate(link.bandwidth)}. {'; '.join(parts)}."


def bandwidth_scene(points: Points, world_size: int, link: AlphaBeta, title: str) -> Scene:
    """The scene that `bandwidth_picture` shows; arguments and errors as there."""
    if len({size for size, _ in points}) < 2:
        raise ValueError(f"points has {len(points)} of one size; a curve takes two: give at least two different sizes")
    sizes = [size for size, _ in points]
    rates = [ring_cost(size, world_size, link).busbw for size in sizes]
    busbw = [bus_bandwidth("all_reduce", size, world_size, seconds) for size, seconds in points]
    algbw = [algorithm_bandwidth(size, seconds) for size, seconds in points]
    axes = _Axes(sizes, [*rates, *busbw, *algbw, link.bandwidth])
    scene = Scene()
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    _draw_key(scene)
    _draw_axes(scene, axes)
    ceiling = axes.y(link.bandwidth)
    scene.line(_LEFT, ceiling, _RIGHT, ceiling, INK, 1.2)
    scene.write(_LEFT + 6, ceiling - 10, f"the link: {_rate(link.bandwidth)} one way", SMALL, align="left")
    bends = [sizes[0] * (sizes[-1] / sizes[0]) ** (i / _BENDS) for i in range(_BENDS + 1)]
    law = [(axes.x(size), axes.y(ring_cost(size, world_size, link).busbw)) for size in bends]
    for (x0, y0), (x1, y1) in pairwise(law):
        scene.line(x0, y0, x1, y1, COMMUNICATION.colour, 2.0)
    for size, by_bus, by_algorithm in zip(sizes, busbw, algbw, strict=True):
        for rate, fill in ((by_algorithm, PAPER), (by_bus, COMMUNICATION.colour)):
            x, y = axes.x(size) - _POINT / 2, axes.y(rate) - _POINT / 2
            scene.box(x, y, _POINT, _POINT, fill, edge=INK)
    return scene


class _Axes:
    """Pixels of a size and of a rate, by their logarithms, with room for whole powers of ten of the rate."""

    def __init__(self, sizes: Sequence[float], rates: Sequence[float]) -> None:
        self._sizes = math.log2(min(sizes)), math.log2(max(sizes))
        self.powers = range(math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates) * 1.2)) + 1)
        self.ticks = sorted(set(sizes))

    def x(self, size: float) -> float:
        least, most = self._sizes
        return _LEFT + 24 + (math.log2(size) - least) / (most - least) * (_RIGHT - _LEFT - 60)

    def y(self, rate: float) -> float:
        least, most = self.powers[0], self.powers[-1]
        return _FOOT - (math.log10(rate) - least) / (most - least) * (_FOOT - _TOP)


def _draw_axes(scene: Scene, axes: _Axes) -> None:
    scene.line(_LEFT, _FOOT, _RIGHT, _FOOT, FAINT)
    for power in axes.powers:
        y = axes.y(10.0**power)
        scene.line(_LEFT, y, _RIGHT, y, "#DDDDDD", 0.8)
        scene.write(_LEFT - 8, y, _rate(10.0**power), SMALL, align="right")
    right = -math.inf
    for size in axes.ticks:
        x = axes.x(size)
        scene.line(x, _FOOT, x, _FOOT + 5, FAINT)
        if x - right > 70:  # a label needs so much room
            scene.write(x, _FOOT + 18, format_bytes(size, digits=0), SMALL)
            right = x
    scene.write((_LEFT + _RIGHT) / 2, _FOOT + 40, "S, the size of the tensor", SMALL)


def _draw_key(scene: Scene) -> None:
    scene.box(16, 40, _POINT, _POINT, COMMUNICATION.colour, edge=INK)
    scene.write(32, 45, "busbw, measured", SMALL, align="left")
    scene.box(170, 40, _POINT, _POINT, PAPER, edge=INK)
    scene.write(186, 45, "algbw, measured", SMALL, align="left")
    scene.line(324, 45, 350, 45, COMMUNICATION.colour, 2.0)
    scene.write(358, 45, "busbw by the law, from latency and rate", SMALL, align="left")


def _rate(rate: float) -> str:
    """Bytes per second with a unit of powers of ten."""
    return f"{format_bytes(rate, binary=False)}/s" if rate < 100 * GB else f"{rate / GB:,.0f} GB/s"
