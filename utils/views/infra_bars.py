"""Rows of stacked bars with a label on the left and words on the right, as the pictures of infrastructure have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.views.board import Scene, extent
from utils.views.palette import INK, LABEL, PAPER, SMALL


@dataclass(frozen=True)
class Look:
    """A kind of segment: its name in the key, its colour, whether it is striped."""

    name: str
    colour: str
    hatched: bool = False


@dataclass(frozen=True)
class Row:
    """label: on the left. segments: how each looks and how long it is. begin: where the first starts. said: right."""

    label: str
    segments: tuple[tuple[Look, float], ...]
    said: str
    bold: bool = False
    begin: float = 0.0

    @property
    def end(self) -> float:
        return self.begin + sum(length for _, length in self.segments)


def draw_key(scene: Scene, x: float, y: float, looks: Sequence[Look]) -> None:
    """Samples with their names, from left to right."""
    for look in looks:
        _box(scene, look, x, y - 6, 14, 12)
        scene.write(x + 20, y, look.name, SMALL, align="left")
        x = extent(scene.words[-1])[2] + 22


def draw_rows(
    scene: Scene, rows: Sequence[Row], left: float, top: float, width: float, pitch: float = 34, height: float = 20
) -> float:
    """The rows, the longest of them `width` pixels; returns where they end."""
    most = max((row.end for row in rows), default=0.0) or 1.0
    for number, row in enumerate(rows):
        y = top + number * pitch
        x = left + width * row.begin / most
        if row.label:
            scene.write(left - 10, y + height / 2, row.label, LABEL, align="right", bold=row.bold)
        for look, length in row.segments:
            right = x + width * length / most
            if right - x > 0.05:
                _box(scene, look, x, y, right - x, height)
            x = right
        if row.said:
            scene.write(x + 8, y + height / 2, row.said, SMALL, align="left", bold=row.bold)
    foot = top + len(rows) * pitch
    scene.line(left, top - 6, left, foot - pitch + height + 6, INK)
    return foot


def _box(scene: Scene, look: Look, x: float, y: float, width: float, height: float) -> None:
    if look.hatched:
        scene.box(x, y, width, height, PAPER, look.colour, hatched=True)
    else:
        scene.box(x, y, width, height, look.colour, edge=INK)
