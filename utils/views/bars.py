"""Rows of horizontal bars made of segments, one scale below them, and a line that they should stay under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from utils.theory.units import TB, format_bytes
from utils.views.board import Scene, Words, extent
from utils.views.kinds import Look, draw_block, draw_swatch, round_steps
from utils.views.palette import FAINT, INK, PAPER, SMALL, ink_on

_CUT = 7  # pixels that the torn end of a bar leans
_TORN = 22  # pixels of a torn bar's end in which nothing is written


@dataclass(frozen=True)
class Bar:
    """One row. label: on its left. segments: how each looks, and its bytes. said: on its right."""

    label: str
    segments: tuple[tuple[Look, float], ...]
    said: str
    bold: bool = False

    @property
    def total(self) -> float:
        return sum(size for _, size in self.segments)


@dataclass(frozen=True)
class Frame:
    """Where rows of bars stand, in pixels: labels end at `left`, bars begin there and reach `width` to the right.

    most: bytes that `width` stands for; a longer bar is torn at its end.
    """

    left: float
    top: float
    width: float
    pitch: float
    height: float
    most: float

    @property
    def scale(self) -> float:
        """Pixels per byte."""
        return self.width / self.most

    def foot(self, rows: int) -> float:
        """Where the scale stands below so many rows."""
        return self.top + rows * self.pitch

    def middle(self, row: int) -> float:
        """The middle line of a row."""
        return self.top + (row + 0.5) * self.pitch - 2


def draw_bars(scene: Scene, frame: Frame, bars: Sequence[Bar], limit: float | None = None) -> None:
    """The rows, each with its label, its segments with their sizes where there is room, and what is said of it.

    limit: bytes at which `draw_limit` will draw its line; no size is written across it.
    """
    end = frame.left + frame.width
    marks = [] if limit is None else [frame.left + limit * frame.scale]
    for row, bar in enumerate(bars):
        y, x = frame.middle(row), frame.left
        if bar.label:
            scene.write(frame.left - 8, y, bar.label, SMALL, align="right", bold=bar.bold)
        torn = bar.total > frame.most * (1 + 1e-9)
        for look, size in bar.segments:
            right = min(x + size * frame.scale, end)
            draw_block(scene, look, x, y - frame.height / 2, right - x, frame.height)
            if not look.hatched:
                write_inside(
                    scene, gb(size), free_part(x, right, [*marks, end - _TORN] if torn else marks), y, look.colour
                )
            x = right
        if torn:
            _tear(scene, end, y, frame.height)
        scene.write(end + 14, y, bar.said, SMALL, align="left", bold=bar.bold)
    scene.line(frame.left, frame.top - 4, frame.left, frame.foot(len(bars)), INK)


def draw_scale(scene: Scene, frame: Frame, rows: int, count: int = 5) -> None:
    """A scale of bytes below the rows; a number that would touch the one before is left out."""
    foot, end, taken = frame.foot(rows), frame.left + frame.width, -inf
    scene.line(frame.left, foot, end, foot, INK)
    for size in round_steps(frame.most, binary=False, count=count):
        x = frame.left + size * frame.scale
        scene.line(x, foot, x, foot + 5, INK)
        word = Words(x, foot + 15, gb(size), SMALL)
        left, _, right, _ = extent(word)
        if left > taken + 6:
            scene.words.append(word)
            taken = right


def draw_limit(scene: Scene, frame: Frame, rows: int, size: float, label: str) -> None:
    """An upright line at `size` bytes, named above the rows; nothing where the scale ends before it."""
    x = frame.left + size * frame.scale
    if x <= frame.left + frame.width:
        scene.line(x, frame.top - 8, x, frame.foot(rows) + 5, INK, 3)
        align = "right" if x > frame.left + frame.width / 2 else "left"
        scene.write(x + (2 if align == "right" else -2), frame.top - 18, label, SMALL, align=align, bold=True)


def draw_key(scene: Scene, x: float, y: float, looks: Sequence[tuple[Look, str]], gap: float = 24) -> float:
    """Samples with their names from left to right; where the last of them ends."""
    for look, name in looks:
        draw_swatch(scene, look, x, y)
        scene.write(x + 20, y, name, SMALL, align="left")
        x = extent(scene.words[-1])[2] + gap
    return x - gap


def gb(size: float) -> str:
    """In powers of ten, as the sizes of models and of GPUs are mostly given, with three digits."""
    if size >= 1000 * TB:
        return f"{size / TB:,.0f} TB"
    power = max(p for p in range(5) if size >= 1000**p or p == 0)
    return format_bytes(size, binary=False, digits=1 if size >= 10 * 1000**power else 2)


def free_part(left: float, right: float, marks: Sequence[float]) -> tuple[float, float]:
    """The widest part of a segment of a bar that no mark crosses."""
    edges = [left, *sorted(mark for mark in marks if left < mark < right), right]
    return max(pairwise(edges), key=lambda part: part[1] - part[0])


def write_inside(scene: Scene, text: str, part: tuple[float, float], y: float, colour: str) -> None:
    """Words in the middle of a part of a bar of that colour; nothing if they are wider than it."""
    word = Words(sum(part) / 2, y, text, SMALL, colour=ink_on(colour))
    ink_left, _, ink_right, _ = extent(word)
    if ink_right - ink_left < part[1] - part[0] - 8:
        scene.words.append(word)


def _tear(scene: Scene, x: float, y: float, height: float) -> None:
    """Two slanted white lines across a bar's end: it goes on."""
    for shift in (-18, -10):
        scene.line(x + shift, y + height / 2 + 1, x + shift + _CUT, y - height / 2 - 1, PAPER, 3)
    scene.line(x, y - height / 2, x, y + height / 2, FAINT)
