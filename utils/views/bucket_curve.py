"""The time of a step against the size of its buckets: a line predicted, dots measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

from utils.theory.arguments import check_amount
from utils.theory.units import format_bytes
from utils.views.board import Board, Scene
from utils.views.clock import round_step
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMPUTE, FAINT, INK, SMALL, TITLE

HEIGHT = 330
TOLERANCE = 0.1  # of a predicted time: within it, measured and predicted count as equal

_LEFT, _TOP, _FOOT = 70, 78, HEIGHT - 50
_RIGHT = WIDTH - 196  # room for the names of the limits
_DOT = 9


def bucket_curve_picture(
    predicted: Mapping[float, float],
    measured: Mapping[float, float] | None = None,
    limits: Mapping[str, float] | None = None,
    title: str = "Step time against bucket size",
    found: str = "measured",
) -> Picture:
    """Seconds of a step for each bucket size in bytes, sizes on a logarithmic scale, times from 0.

    predicted: the line, at least two sizes. measured: dots at some of the same sizes. limits: name -> seconds, drawn
    as lines across, such as {"compute alone": step.compute, "nothing overlapped": ...}. found: the name of the dots;
    what comes from emulated links is no measurement.
    Raises ValueError, in one sentence, for fewer sizes, a size or time that is not above 0, or one measured but not
    predicted.
    """
    measured, limits = measured or {}, limits or {}
    board = Board(HEIGHT, WIDTH)
    board.show(bucket_curve_scene(predicted, measured, limits, title, found))
    return Picture(board.figure, bucket_curve_words(predicted, measured, limits, title, found))


def bucket_curve_scene(
    predicted: Mapping[float, float],
    measured: Mapping[float, float],
    limits: Mapping[str, float],
    title: str,
    found: str = "measured",
) -> Scene:
    """The scene that `bucket_curve_picture` shows; errors as there."""
    _check(predicted, measured, limits)
    sizes = sorted(predicted)
    first, last = math.log(sizes[0]), math.log(sizes[-1])
    most = 1.05 * max([*predicted.values(), *measured.values(), *limits.values()])

    def x(size: float) -> float:
        return _LEFT + 12 + (math.log(size) - first) / (last - first) * (_RIGHT - _LEFT - 24)

    def y(seconds: float) -> float:
        return _FOOT - seconds / most * (_FOOT - _TOP)

    scene = Scene()
    scene.write(_LEFT, 18, title, TITLE, align="left", bold=True)
    _draw_key(scene, found if measured else "")
    _draw_scale(scene, most, y)
    _draw_limits(scene, limits, y)
    points = [(x(size), y(predicted[size])) for size in sizes]
    for (x0, y0), (x1, y1) in pairwise(points):
        scene.line(x0, y0, x1, y1, INK, 1.6)
    for size, seconds in measured.items():
        scene.box(x(size) - _DOT / 2, y(seconds) - _DOT / 2, _DOT, _DOT, COMPUTE.colour, edge=INK)
    _draw_sizes(scene, [(size, x(size)) for size in sizes])
    return scene


def bucket_curve_words(
    predicted: Mapping[float, float],
    measured: Mapping[float, float],
    limits: Mapping[str, float],
    title: str,
    found: str = "measured",
) -> str:
    """The picture in words: predictions, and whether the measurement agrees within `TOLERANCE`."""
    _check(predicted, measured, limits)
    said = []
    for size in sorted(predicted):
        law, seconds = predicted[size], measured.get(size)
        told = f"{_size(size)}: predicted {_ms(law)}"
        if seconds is not None:
            agrees = abs(seconds - law) <= TOLERANCE * law
            told += f", {found} the same within {100 * TOLERANCE:g}%" if agrees else f", {found} {_ms(seconds)}"
        said.append(f"{told}.")
    said += [f"{name}: {_ms(seconds)}." for name, seconds in limits.items()]
    return f"{title}. {' '.join(said)}"


def _draw_key(scene: Scene, found: str) -> None:
    scene.line(_LEFT, 42, _LEFT + 20, 42, INK, 1.6)
    scene.write(_LEFT + 28, 42, "predicted", align="left")
    if found:
        scene.box(_LEFT + 118, 42 - _DOT / 2, _DOT, _DOT, COMPUTE.colour, edge=INK)
        scene.write(_LEFT + 136, 42, found, align="left")


def _draw_scale(scene: Scene, most: float, y: Callable[[float], float]) -> None:
    """Times in milliseconds on the left, a pale line across for each."""
    step = round_step(1e3 * most / 6)
    for i in range(int(1e3 * most / step + 1e-9) + 1):
        at = y(i * step / 1e3)
        scene.line(_LEFT, at, _RIGHT, at, "#E4E4E4" if i else INK)
        scene.write(_LEFT - 8, at, f"{i * step:g}", SMALL, align="right")
    scene.write(_LEFT - 8, _TOP - 16, "ms", SMALL, align="right")


def _draw_limits(scene: Scene, limits: Mapping[str, float], y: Callable[[float], float]) -> None:
    """A line across for each, its name to the right; names that would touch are moved apart downwards."""
    below = -math.inf
    for name, seconds in sorted(limits.items(), key=lambda limit: -limit[1]):
        scene.line(_LEFT, y(seconds), _RIGHT, y(seconds), FAINT, 1.4)
        at = max(y(seconds), below + 16)
        scene.write(_RIGHT + 8, at, name, SMALL, align="left")
        below = at


def _draw_sizes(scene: Scene, places: list[tuple[float, float]]) -> None:
    """The sizes below, as many as there is room for, always the first."""
    right = -math.inf
    for size, x in places:
        scene.line(x, _FOOT, x, _FOOT + 4, INK)
        if x - 34 >= right:
            scene.write(x, _FOOT + 15, _size(size), SMALL)
            right = x + 34
    scene.write((_LEFT + _RIGHT) / 2, _FOOT + 36, "size at which a bucket closes", SMALL)


def _check(predicted: Mapping[float, float], measured: Mapping[float, float], limits: Mapping[str, float]) -> None:
    if len(predicted) < 2:
        raise ValueError(f"predicted has {len(predicted)} bucket sizes; give at least two for a line")
    for size in measured:
        if size not in predicted:
            raise ValueError(f"measured has the size {size!r}, predicted has not: give a prediction for each")
    for size in predicted:
        check_amount("a bucket size", size, "a number of bytes", "such as 25 * MiB")
    for seconds in (*predicted.values(), *measured.values(), *limits.values()):
        check_amount("a step time", seconds, "a duration in seconds", "such as 0.4")


def _size(size: float) -> str:
    return format_bytes(size, digits=1)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.01 else f"{1e3 * seconds:.2g} ms"
