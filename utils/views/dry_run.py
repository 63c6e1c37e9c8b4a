"""The bytes of one rank over a traced step, by kind and stacked, with the predicted peak as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from utils.theory.arguments import check_amount
from utils.theory.breakdown import PART_NAMES
from utils.theory.moments import Moment
from utils.views.bars import gb
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import PART_LOOKS, draw_swatch
from utils.views.memory_curve import ROOM, Plot, draw_curve, draw_limit, draw_phases, most_of_each
from utils.views.palette import SMALL, TITLE

_LEFT, _TOP, _PLOT = 84, 158, 240
_SPAN = WIDTH - _LEFT - 16
HEIGHT = _TOP + _PLOT + 42


def dry_run_picture(run: Any, memory: float | None = None) -> Picture:
    """A traced step as a curve.

    run: a record with `request.title`, `events` (each with `phase`, `label`, `largest` and `last`, two
        `theory.moments.Moment`), `peak`, `total`, `predicted` (a `theory.breakdown.Breakdown`) and `fits(memory)`.
    memory: of a GPU in bytes, drawn as a line. Raises ValueError if it is no finite number above 0.
    A part of the step between two hooks of FSDP is as wide as any other, whatever time it would take.
    """
    if memory is not None:
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
    board = Board(HEIGHT, WIDTH)
    board.show(dry_run_scene(run, memory))
    return Picture(board.figure, dry_run_words(run, memory))


def dry_run_words(run: Any, memory: float | None = None) -> str:
    """The picture in words: its text alternative. Bytes alone, so the same on every run."""
    top = run.peak.largest
    parts = ", ".join(f"{PART_NAMES[part]} {gb(size)}" for part, size in top.parts.items() if size)
    often = ", ".join(f"{PART_NAMES[part]} {gb(size)}" for part, size in _most(run).items() if size)
    verdict = "" if memory is None else f" It {_fits(run, memory)} {gb(memory)}."
    return (
        f"{run.request.title}. At its largest, {run.peak.label}: {parts}: {gb(run.total)} in all, predicted "
        f"{gb(run.predicted.total)}.{verdict} Over {len(run.events)} parts of the step, at most: {often}."
    )


def dry_run_scene(run: Any, memory: float | None = None) -> Scene:
    """The scene that `dry_run_picture` shows."""
    scene = Scene()
    verdict = "" if memory is None else f"; it {_fits(run, memory)} {gb(memory)}"
    scene.write(16, 18, run.request.title, TITLE, align="left", bold=True)
    scene.write(16, 41, f"At its largest: {run.peak.label}, {gb(run.total)}{verdict}.", align="left")
    _draw_most(scene, _most(run))
    plot = Plot(_LEFT, _TOP, _SPAN, _PLOT, ROOM * max(run.total, run.predicted.total, memory or 0))
    draw_curve(scene, plot, _moments(run))
    draw_phases(scene, plot, [event.phase for event in run.events])
    draw_limit(scene, plot, run.predicted.total, f"predicted at most: {gb(run.predicted.total)}", 1.2, "left")
    if memory is not None:
        draw_limit(scene, plot, memory, f"the GPU has {gb(memory)}", 3, "right")
    return scene


def predicted_scene(predicted: Any, moments: Sequence[Moment], memory: float, ask: str) -> Scene:
    """What stands there before a trace: the predicted bytes at every block, in the same place and on the same scale.

    predicted: a `theory.breakdown.Breakdown`. moments: as from `theory.fsdp_step.memory_over_step`. ask: how to begin.
    """
    scene = Scene()
    scene.write(16, 18, predicted.title, TITLE, align="left", bold=True)
    scene.write(16, 41, f"Predicted. {ask}", align="left")
    _draw_most(scene, most_of_each(moments))
    plot = Plot(_LEFT, _TOP, _SPAN, _PLOT, ROOM * max(predicted.total, memory))
    draw_curve(scene, plot, moments)
    draw_phases(scene, plot, [moment.name.split(",")[0] for moment in moments])
    draw_limit(scene, plot, predicted.total, f"predicted at most: {gb(predicted.total)}", 1.2, "left")
    draw_limit(scene, plot, memory, f"the GPU has {gb(memory)}", 3, "right")
    return scene


def _fits(run: Any, memory: float) -> str:
    return "fits into" if run.fits(memory) else "does not fit into"


def _moments(run: Any) -> list[Moment]:
    """Each event takes two places: its largest moment, and its end."""
    return [moment for event in run.events for moment in (event.largest, event.last)]


def _most(run: Any) -> dict[str, float]:
    """The most that each part holds at any event."""
    return most_of_each(_moments(run))


def _draw_most(scene: Scene, most: dict[str, float]) -> None:
    """Each kind that held anything, with the most that it held."""
    scene.write(16, 63, "The most that each kind holds at any moment:", SMALL, align="left")
    shown = [(PART_LOOKS[part], PART_NAMES[part], size) for part, size in most.items() if size]
    for place, (look, name, size) in enumerate(shown):
        x, y = 16 + (place % 3) * 270, 84 + 20 * (place // 3)
        draw_swatch(scene, look, x, y)
        scene.write(x + 20, y, f"{name}: {gb(size)}", SMALL, align="left")
