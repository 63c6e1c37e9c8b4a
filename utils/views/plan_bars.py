"""Bars of a plan's rows: the memory of a GPU against what may be used, and a step with what it only waits for."""

from __future__ import annotations

from utils.theory.units import GB
from utils.views.board import Scene
from utils.views.palette import COMMUNICATION, COMPUTE, PAPER, PARAMETERS, SMALL

TORN = 1.5  # times what may be used: a longer bar ends there


def memory_bar(
    scene: Scene, x: float, wide: float, y: float, thick: float, held: float, budget: float, bold: bool, room: float
) -> None:
    """`held` of `budget` bytes, hollow where it is more, and in words beside it.

    wide: pixels of the widest bar, `TORN` budgets. room: pixels that the words need: they keep off the budget's line.
    """
    length, limit = min(held / budget / TORN, 1.0) * wide, x + wide / TORN
    fill = PARAMETERS.colour if held <= budget else PAPER
    scene.box(x, y - thick / 2, length, thick, fill, edge=PARAMETERS.colour)
    said = x + length + 5
    said = limit + 5 if said - 5 < limit < said + room else said  # not across the line, nor at it
    scene.write(said, y, in_gb(held), SMALL, align="left", bold=bold)


def step_bar(scene: Scene, x: float, y: float, thick: float, busy: float, idle: float, fits: bool) -> None:
    """A step from x on: `busy` and then `idle` pixels; hollow for what does not fit."""
    scene.box(x, y - thick / 2, busy, thick, COMPUTE.colour if fits else PAPER, edge=COMPUTE.colour)
    scene.box(x + busy, y - thick / 2, idle, thick, COMMUNICATION.colour if fits else PAPER, edge=COMMUNICATION.colour)


def in_gb(size: float) -> str:
    """Bytes in GB, short."""
    return f"{size / GB:,.0f} GB" if size >= 99.95 * GB else f"{size / GB:.1f} GB"


def in_time(seconds: float) -> str:
    """Seconds in s or ms, short."""
    return (
        f"{seconds:,.0f} s" if seconds >= 999.5 else f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
    )
