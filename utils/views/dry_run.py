"""The bytes of one rank over a traced step, by kind and stacked, with the predicted peak as a line."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from utils.theory.arguments import check_amount
from utils.theory.breakdown import PART_NAMES
from utils.theory.moments import Moment
from utils.views.bars import gb
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import PART_LOOKS, draw_block, draw_swatch, round_steps
from utils.views.palette import FAINT, INK, SMALL, TITLE

_LEFT, _TOP, _PLOT = 84, 158, 240
_SPAN = WIDTH - _LEFT - 16
_FOOT = _TOP + _PLOT
HEIGHT = _FOOT + 42
_ROOM = 1.08  # above the highest line
_OVERLAP = 0.6  # pixels


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
    _draw_key(scene, run)
    most = _ROOM * max(run.total, run.predicted.total, memory or 0)
    for size in round_steps(most, binary=False):
        y = _FOOT - size * _PLOT / most
        scene.line(_LEFT - 4, y, _LEFT + _SPAN, y, FAINT, 0.5)
        scene.write(_LEFT - 8, y, gb(size) if size else "0", SMALL, align="right")
    _draw_curve(scene, _columns(run), most)
    scene.line(_LEFT, _FOOT, _LEFT + _SPAN, _FOOT, INK)
    _draw_phases(scene, run)
    _draw_limits(scene, run, memory, most)
    return scene


def _fits(run: Any, memory: float) -> str:
    return "fits into" if run.fits(memory) else "does not fit into"


def _most(run: Any) -> dict[str, float]:
    """The most that each part holds at any event."""
    moments = [moment.parts for event in run.events for moment in (event.largest, event.last)]
    return {part: max(each[part] for each in moments) for part in PART_LOOKS}


def _columns(run: Any) -> list[Moment]:
    """What each column of pixels shows: of the moments that share one, the largest.

    Each event takes two places: its largest moment, and its end.
    """
    moments = [moment for event in run.events for moment in (event.largest, event.last)]
    columns = []
    for x in range(_SPAN):
        first = x * len(moments) // _SPAN
        end = max(first + 1, (x + 1) * len(moments) // _SPAN)
        columns.append(max(moments[first:end], key=lambda moment: moment.total))
    return columns


def _draw_curve(scene: Scene, columns: list[Moment], most: float) -> None:
    bottoms = [0.0] * len(columns)
    parts = [column.parts for column in columns]
    for part, look in PART_LOOKS.items():
        sizes = [each[part] for each in parts]
        for _, run in groupby(range(len(columns)), key=lambda x, sizes=sizes: (bottoms[x], sizes[x])):
            places = list(run)
            foot, height = bottoms[places[0]] * _PLOT / most, sizes[places[0]] * _PLOT / most
            # A little wide, under the next block: no seam of paper shows between two of them.
            width = min(len(places) + _OVERLAP, _SPAN - places[0])
            draw_block(scene, look, _LEFT + places[0], _FOOT - foot - height, width, height)
        bottoms = [bottom + size for bottom, size in zip(bottoms, sizes, strict=True)]


def _draw_key(scene: Scene, run: Any) -> None:
    """Each kind that held anything, with the most that it held."""
    scene.write(16, 63, "The most that each kind holds at any moment:", SMALL, align="left")
    shown = [(PART_LOOKS[part], PART_NAMES[part], size) for part, size in _most(run).items() if size]
    for place, (look, name, size) in enumerate(shown):
        x, y = 16 + (place % 3) * 270, 84 + 20 * (place // 3)
        draw_swatch(scene, look, x, y)
        scene.write(x + 20, y, f"{name}: {gb(size)}", SMALL, align="left")


def _draw_limits(scene: Scene, run: Any, memory: float | None, most: float) -> None:
    """The predicted peak, and the GPU's memory, each as a line with its name; the names keep apart."""
    lines = [(run.predicted.total, f"predicted at most: {gb(run.predicted.total)}", 1.2)]
    if memory is not None:
        lines.append((memory, f"the GPU has {gb(memory)}", 3))
    for place, (size, words, width) in enumerate(lines):
        y = _FOOT - size * _PLOT / most
        scene.line(_LEFT, y, _LEFT + _SPAN, y, INK, width)
        left = place == 0
        scene.write(_LEFT + 4 if left else _LEFT + _SPAN, y - 4, words, SMALL, align="left" if left else "right",
                    rise="bottom", bold=True)  # fmt: skip


def _draw_phases(scene: Scene, run: Any) -> None:
    """Below: which columns are forward, loss, backward, step; the name where it fits."""
    y, each = _FOOT + 8, _SPAN / len(run.events)
    for phase, group in groupby(range(len(run.events)), key=lambda i: run.events[i].phase):
        places = list(group)
        left, right = _LEFT + places[0] * each, _LEFT + (places[-1] + 1) * each
        scene.line(left + 1, y, max(right - 1, left + 2), y, INK, 1.4)
        scene.line(right, _TOP, right, y, FAINT, 0.5)
        name = Words((left + right) / 2, y + 14, phase, SMALL)
        ink_left, _, ink_right, _ = extent(name)
        if ink_right - ink_left < right - left - 4:
            scene.words.append(name)
