"""A drawing surface in displayed pixels, whose artists are made once and then moved.

A `Scene` is a plain description: filled boxes, lines, arrows and words, all in pixels with y downwards. A `Board` is
one matplotlib figure that shows one scene after another. Making a figure anew for each move of a slider costs several
times as much, and leaks if somebody keeps it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection

from utils.views.figure import new_figure
from utils.views.lettering import joined, placed
from utils.views.palette import FAINT, INK, LABEL

_ARROW_HEAD = 8.0  # pixels


@dataclass(frozen=True)
class Box:
    """A filled rectangle, (x, y) its upper left corner. Empty boxes are white; hatched ones are striped."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str = "none"
    hatched: bool = False


@dataclass(frozen=True)
class Line:
    """From (x0, y0) to (x1, y1); `arrow` puts a head on its end."""

    x0: float
    y0: float
    x1: float
    y1: float
    colour: str = FAINT
    width: float = 1.0
    arrow: bool = False


@dataclass(frozen=True)
class Words:
    """Text at (x, y), `size` in points. For `align` and `rise` see `lettering.placed`."""

    x: float
    y: float
    text: str
    size: float = LABEL
    colour: str = INK
    align: str = "center"
    rise: str = "center"
    bold: bool = False
    upright: bool = False  # turned by 90 degrees, read from below


@dataclass
class Scene:
    """What is to be seen. Boxes are drawn first, then lines, then words."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)

    def box(self, *args: object, **kwargs: object) -> None:
        self.boxes.append(Box(*args, **kwargs))

    def line(self, *args: object, **kwargs: object) -> None:
        self.lines.append(Line(*args, **kwargs))

    def write(self, *args: object, **kwargs: object) -> None:
        self.words.append(Words(*args, **kwargs))


class Board:
    """One figure of `width` by `height` displayed pixels; `show` moves its artists to a scene."""

    def __init__(self, height: int, width: int) -> None:
        self.figure = new_figure(height, width)
        FigureCanvasAgg(self.figure)  # the figure keeps it: no new canvas at each drawing
        axes = self.figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        self._plain = axes.add_collection(PolyCollection([], linewidths=0.8), autolim=False)
        self._hatched = axes.add_collection(PolyCollection([], linewidths=0.8, hatch="////"), autolim=False)
        self._lines = axes.add_collection(LineCollection([], capstyle="butt"), autolim=False)
        self._heads = axes.add_collection(PolyCollection([], linewidths=0), autolim=False)
        self._words = axes.add_collection(PathCollection([], linewidths=0), autolim=False)

    def show(self, scene: Scene) -> None:
        """Move every artist to its place in `scene`."""
        for collection, hatched in ((self._plain, False), (self._hatched, True)):
            boxes = [box for box in scene.boxes if box.hatched is hatched]
            collection.set_verts(_corners(boxes))
            collection.set_facecolor([box.fill for box in boxes])
            collection.set_edgecolor([box.edge for box in boxes])
        self._lines.set_segments([_shaft(line) for line in scene.lines])
        self._lines.set_color([line.colour for line in scene.lines])
        self._lines.set_linewidth([line.width for line in scene.lines])
        arrows = [line for line in scene.lines if line.arrow]
        self._heads.set_verts([_head(line) for line in arrows])
        self._heads.set_facecolor([line.colour for line in arrows])
        colours = sorted({word.colour for word in scene.words})
        self._words.set_paths([joined([_letters(w) for w in scene.words if w.colour == c]) for c in colours])
        self._words.set_facecolor(colours)


def extent(word: Words) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the ink of a word, in pixels."""
    vertices, _ = _letters(word)
    (left, top), (right, bottom) = vertices.min(axis=0), vertices.max(axis=0)
    return float(left), float(top), float(right), float(bottom)


def _letters(word: Words) -> tuple:
    return placed(word.text, word.x, word.y, word.size, word.bold, word.align, word.rise, word.upright)


def _corners(boxes: list[Box]) -> np.ndarray:
    """The corners of each box, shape (boxes, 4, 2): matplotlib takes one array faster than many lists."""
    sides = np.array([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes]).reshape(-1, 4)
    return sides[:, [(0, 1), (2, 1), (2, 3), (0, 3)]]


def _shaft(line: Line) -> list[tuple[float, float]]:
    """The line itself; before an arrow's head it stops short."""
    if not line.arrow:
        return [(line.x0, line.y0), (line.x1, line.y1)]
    along_x, along_y = _direction(line)
    return [(line.x0, line.y0), (line.x1 - _ARROW_HEAD * along_x, line.y1 - _ARROW_HEAD * along_y)]


def _head(line: Line) -> list[tuple[float, float]]:
    along_x, along_y = _direction(line)
    back_x, back_y = line.x1 - _ARROW_HEAD * along_x, line.y1 - _ARROW_HEAD * along_y
    half = 0.45 * _ARROW_HEAD
    return [
        (line.x1, line.y1),
        (back_x - half * along_y, back_y + half * along_x),
        (back_x + half * along_y, back_y - half * along_x),
    ]


def _direction(line: Line) -> tuple[float, float]:
    length = math.hypot(line.x1 - line.x0, line.y1 - line.y0) or 1.0
    return (line.x1 - line.x0) / length, (line.y1 - line.y0) / length
