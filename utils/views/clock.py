"""The axis of time under a picture: milliseconds, with round steps."""

from __future__ import annotations

from utils.views.board import Scene
from utils.views.palette import INK, LABEL, SMALL


def draw_clock(scene: Scene, seconds: float, top: float, left: float, span: float) -> None:
    """An axis of `span` pixels for `seconds` (above 0), from (left, top) to the right, with its numbers below."""
    scene.line(left, top, left + span, top, INK)
    step = round_step(1e3 * seconds / 6)
    for i in range(int(1e3 * seconds / step + 1e-9) + 1):
        x = left + i * step / (1e3 * seconds) * span
        scene.line(x, top, x, top + 4, INK)
        scene.write(min(x, left + span - 12), top + 14, f"{i * step:g}", SMALL)
    scene.write(left - 14, top + 14, "ms", LABEL, align="right")


def round_step(raw: float) -> float:
    """The least of 1, 2, 5, 10, 20, … (and their tenths) that is at least `raw`."""
    power = 10.0**-6
    while True:
        for factor in (1, 2, 5):
            if factor * power >= raw:
                return factor * power
        power *= 10
