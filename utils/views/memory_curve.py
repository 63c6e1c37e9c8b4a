"""Bytes of one rank over a step as a curve: kinds stacked on each other, moment after moment, with limits as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from utils.theory.moments import Moment
from utils.views.bars import gb
from utils.views.board import Scene, Words, extent
from utils.views.kinds import PART_LOOKS, draw_block, round_steps
from utils.views.palette import FAINT, INK, SMALL

ROOM = 1.08  # of the highest line, above the curve
_OVERLAP = 0.6  # pixels


@dataclass(frozen=True)
class Plot:
    """Where the curve stands, in pixels. most: bytes that `height` stands for."""

    left: int
    top: int
    span: int
    height: int
    most: float

    @property
    def foot(self) -> int:
        return self.top + self.height

    def y(self, size: float) -> float:
        """How high so many bytes are."""
        return self.foot - size * self.height / self.most


def columns(moments: Sequence[Moment], span: int) -> list[Moment]:
    """What each of `span` columns of pixels shows: of the moments that share one, the largest."""
    found = []
    for x in range(span):
        first = x * len(moments) // span
        end = max(first + 1, (x + 1) * len(moments) // span)
        found.append(moments[first] if end == first + 1 else max(moments[first:end], key=lambda moment: moment.total))
    return found


def most_of_each(moments: Sequence[Moment]) -> dict[str, float]:
    """The most that each part holds at any moment."""
    parts = [moment.parts for moment in moments]
    return {part: max(each[part] for each in parts) for part in PART_LOOKS}


def draw_curve(scene: Scene, plot: Plot, moments: Sequence[Moment]) -> None:
    """A scale, and above the floor the stacked kinds; each moment is as wide as any other, whatever time it takes."""
    for size in round_steps(plot.most, binary=False):
        scene.line(plot.left - 4, plot.y(size), plot.left + plot.span, plot.y(size), FAINT, 0.5)
        scene.write(plot.left - 8, plot.y(size), gb(size) if size else "0", SMALL, align="right")
    shown = columns(moments, plot.span)
    # Columns of one moment are one object: its parts are asked for once.
    runs = [(len(list(group)), moment.parts) for moment, group in _alike(shown)]
    bottoms = [0.0] * len(runs)
    for part, look in PART_LOOKS.items():
        x, places = plot.left, range(len(runs))
        for (bottom, size), group in groupby(places, key=lambda i, part=part: (bottoms[i], runs[i][1][part])):
            width = sum(runs[i][0] for i in group)
            # A little wide, under the next block: no seam of paper shows between two of them.
            right = min(x + width + _OVERLAP, plot.left + plot.span)
            draw_block(scene, look, x, plot.y(bottom + size), right - x, size * plot.height / plot.most)
            x += width
        bottoms = [bottom + run[1][part] for bottom, run in zip(bottoms, runs, strict=True)]
    scene.line(plot.left, plot.foot, plot.left + plot.span, plot.foot, INK)


def draw_limit(scene: Scene, plot: Plot, size: float, words: str, width: float, align: str) -> None:
    """A level line at `size` bytes with its name above it, at the left or the right end."""
    y, x = plot.y(size), plot.left + 4 if align == "left" else plot.left + plot.span - 8
    scene.line(plot.left, y, plot.left + plot.span, y, INK, width)
    scene.write(x, y - 4, words, SMALL, align=align, rise="bottom", bold=True)


def draw_phases(scene: Scene, plot: Plot, phases: Sequence[str]) -> None:
    """Below: which columns are forward, loss, backward, step; the name where it fits. phases: of each moment."""
    y, each = plot.foot + 8, plot.span / len(phases)
    for phase, group in groupby(range(len(phases)), key=lambda i: phases[i]):
        places = list(group)
        left, right = plot.left + places[0] * each, plot.left + (places[-1] + 1) * each
        scene.line(left + 1, y, max(right - 1, left + 2), y, INK, 1.4)
        scene.line(right, plot.top, right, y, FAINT, 0.5)
        name = Words((left + right) / 2, y + 14, phase, SMALL)
        ink_left, _, ink_right, _ = extent(name)
        if ink_right - ink_left < right - left - 4:
            scene.words.append(name)


def _alike(shown: Sequence[Moment]) -> list[tuple[Moment, list[Moment]]]:
    """Neighbours that are the same object, together."""
    return [(group[0], group) for _, found in groupby(shown, key=id) for group in [list(found)]]
