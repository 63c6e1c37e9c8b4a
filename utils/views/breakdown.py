"""The memory of one GPU in a training step: the parts at the largest moment as a bar, and every moment below it."""

from __future__ import annotations

from utils.theory.arguments import check_amount
from utils.theory.breakdown import PART_NAMES, Breakdown
from utils.theory.moments import Moment
from utils.theory.units import GB, format_bytes
from utils.views.board import Board, Scene, Words, extent
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import PART_LOOKS, draw_block, draw_swatch, round_steps
from utils.views.palette import INK, SMALL, TITLE

_LEFT, _RIGHT = 244, 24
_SPAN = WIDTH - _LEFT - _RIGHT
_KEY_TOP, _ROWS_TOP, _ROW, _BAR = 66, 188, 26, 17


def breakdown_picture(breakdown: Breakdown, memory: float | None = None) -> Picture:
    """One bar for each moment of the step, the largest marked.

    memory: of a GPU in bytes, drawn as a line. Raises ValueError if it is no finite number above 0.
    """
    if memory is not None:
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
    board = Board(breakdown_height(breakdown), WIDTH)
    board.show(breakdown_scene(breakdown, memory))
    return Picture(board.figure, breakdown_words(breakdown, memory))


def breakdown_height(breakdown: Breakdown) -> int:
    """Pixels that the picture is high: a row for each moment."""
    return _ROWS_TOP + _ROW * len(breakdown.moments) + 40


def breakdown_words(breakdown: Breakdown, memory: float | None = None) -> str:
    """The picture in words: its text alternative."""
    parts = ", ".join(f"{PART_NAMES[part]} {_gb(size)}" for part, size in breakdown.parts.items() if size)
    moments = ", ".join(f"{moment.name} {_gb(moment.total)}" for moment in breakdown.moments)
    verdict = ""
    if memory is not None:
        verdict = f" It {'fits' if breakdown.fits(memory) else 'does not fit'} into {_gb(memory)}."
    return (
        f"{breakdown.title}. At its largest, {breakdown.peak_moment.name}: {parts}: {_gb(breakdown.total)} in all."
        f"{verdict} By moment: {moments}."
    )


def breakdown_scene(breakdown: Breakdown, memory: float | None = None) -> Scene:
    """The scene that `breakdown_picture` shows."""
    scene = Scene()
    scene.write(16, 18, breakdown.title, TITLE, align="left", bold=True)
    verdict = ""
    if memory is not None:
        verdict = f"; it {'fits' if breakdown.fits(memory) else 'does not fit'} into {_gb(memory)}"
    scene.write(16, 41, f"At its largest: {breakdown.peak_moment.name}, {_gb(breakdown.total)}{verdict}.", align="left")
    _draw_key(scene, breakdown)
    most = 1.14 * max(breakdown.total, memory or 0)  # room for the sum behind the longest bar
    scale = _SPAN / most
    foot = _ROWS_TOP + _ROW * len(breakdown.moments)
    _draw_scale(scene, most, scale, foot)
    for place, moment in enumerate(breakdown.moments):
        _draw_moment(scene, moment, _ROWS_TOP + _ROW * place, scale, moment is breakdown.peak_moment)
    if memory is not None:
        x = _LEFT + memory * scale
        scene.line(x, _ROWS_TOP - 8, x, foot + 5, INK, 3)
        align = "right" if x > WIDTH / 2 else "left"
        scene.write(x, _ROWS_TOP - 16, f"the GPU has {_gb(memory)}", SMALL, align=align, bold=True)
    return scene


def _draw_key(scene: Scene, breakdown: Breakdown) -> None:
    """Every part with its bytes at the largest moment."""
    for place, (part, look) in enumerate(PART_LOOKS.items()):
        x, y = 16 + (place % 3) * 270, _KEY_TOP + 20 * (place // 3)
        draw_swatch(scene, look, x, y)
        size = breakdown.parts[part]
        scene.write(x + 20, y, f"{PART_NAMES[part]}: {_gb(size) if size else 'none'}", SMALL, align="left")


def _draw_moment(scene: Scene, moment: Moment, top: float, scale: float, largest: bool) -> None:
    middle, left = top + _BAR / 2, float(_LEFT)
    scene.write(_LEFT - 8, middle, moment.name, SMALL, align="right", bold=largest)
    for part, look in PART_LOOKS.items():
        width = moment.parts[part] * scale
        draw_block(scene, look, left, top, width, _BAR)
        left += width
    scene.write(left + 6, middle, _gb(moment.total), SMALL, align="left", bold=largest)


def _draw_scale(scene: Scene, most: float, scale: float, foot: float) -> None:
    scene.line(_LEFT, foot, _LEFT + _SPAN, foot, INK)
    for size in round_steps(most, binary=False, count=6):
        x = _LEFT + size * scale
        scene.line(x, foot, x, foot + 5, INK)
        word = Words(x, foot + 16, _gb(size), SMALL)
        _, _, right, _ = extent(word)
        scene.write(x - max(0.0, right - WIDTH + 4), foot + 16, word.text, SMALL)


def _gb(size: float) -> str:
    """In powers of ten, as the sizes of models and of GPUs are mostly given."""
    return format_bytes(size, binary=False, digits=1 if size >= 10 * GB else 2)
