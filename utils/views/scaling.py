"""Throughput and efficiency against the number of ranks: outline predicted, filling measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import round_steps
from utils.views.palette import COMPUTE, FAINT, INK, PAPER, SMALL, TITLE, ink_on

TOLERANCE = 0.1  # of efficiency: within it, measured and predicted count as equal

_TOP, _BAR, _ROW, _PANEL = 84, 108, 204, 344
_PANELS = (70, WIDTH - _PANEL - 16)
_NUMBER = 18  # the lowest bar that has room for its number


def scaling_picture(
    predicted: Mapping[str, Sequence[Any]],
    measured: Mapping[str, Sequence[float]],
    title: str = "Throughput against the number of ranks",
) -> Picture:
    """For each label a row: samples per second on the left, efficiency on the right, a bar for each number of ranks.

    predicted: label -> one `theory.scaling.Scaling` for each number of ranks, the first of them for 1 rank.
    measured: label -> measured samples per second, in the same order.
    Efficiencies are of the own kind: measured throughput over N times the measured throughput of 1 rank.
    Raises ValueError if labels or lengths differ, or if the first is not for 1 rank.
    """
    _check(predicted, measured)
    board = Board(_TOP + _ROW * len(predicted), WIDTH)
    board.show(scaling_scene(predicted, measured, title))
    return Picture(board.figure, scaling_words(predicted, measured, title))


def scaling_scene(predicted: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[float]], title: str) -> Scene:
    """The scene that `scaling_picture` shows."""
    scene = Scene()
    scene.write(_PANELS[0], 18, title, TITLE, align="left", bold=True)
    scene.box(_PANELS[0], 33, 12, 12, COMPUTE.colour)
    scene.write(_PANELS[0] + 18, 39, "measured", align="left")
    scene.box(_PANELS[0] + 96, 33, 12, 12, PAPER, edge=INK)
    scene.write(_PANELS[0] + 114, 39, "predicted", align="left")
    scene.line(_PANELS[0] + 192, 39, _PANELS[0] + 212, 39, FAINT, 1.6)
    scene.write(_PANELS[0] + 218, 39, "N times the throughput of 1 rank", align="left")
    for row, (label, laws) in enumerate(predicted.items()):
        top = _TOP + row * _ROW
        rates = [law.samples_per_second for law in laws]
        ideal = [law.world_size * rates[0] for law in laws]
        names = [str(law.world_size) for law in laws]
        lines = [f"{law.world_size} x {rates[0]:.1f}" if law.world_size > 1 else "" for law in laws]
        scene.write(_PANELS[0], top, f"{label}: samples per second", align="left", bold=True)
        _draw_bars(scene, names, rates, list(measured[label]), ideal, lines, _PANELS[0], top + 44, "{:.0f}")
        scene.write(_PANELS[1], top, f"{label}: efficiency", align="left", bold=True)
        efficiency = _efficiencies(laws, measured[label])
        _draw_bars(
            scene,
            names,
            [law.efficiency for law in laws],
            efficiency,
            [1.0] * len(laws),
            [""] * len(laws),
            _PANELS[1],
            top + 44,
            "{:.2f}",
        )
    return scene


def scaling_words(predicted: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[float]], title: str) -> str:
    """The picture in words: predictions, and whether the measurement agrees within `TOLERANCE` of efficiency."""
    lines = [f"{title}: efficiency."]
    for label, laws in predicted.items():
        for law, found in zip(laws, _efficiencies(laws, measured[label]), strict=True):
            agrees = abs(found - law.efficiency) <= TOLERANCE
            what = f"measured the same within {TOLERANCE:g}" if agrees else f"measured {found:.1f}"
            ranks = "1 rank" if law.world_size == 1 else f"{law.world_size} ranks"
            lines.append(f"{label}, {ranks}: predicted {law.efficiency:.2f}; {what}.")
    return "\n".join(lines)


def _efficiencies(laws: Sequence[Any], rates: Sequence[float]) -> list[float]:
    return [rate / (law.world_size * rates[0]) for law, rate in zip(laws, rates, strict=True)]


def _draw_bars(
    scene: Scene,
    names: list[str],
    predicted: list[float],
    measured: list[float],
    ideal: list[float],
    lines: list[str],
    left: float,
    top: float,
    form: str,
) -> None:
    """Bars with their numbers inside; `lines` stand above the lines of `ideal`."""
    most = max(*ideal, *measured)
    foot, scale = top + _BAR, _BAR / most
    _draw_axis(scene, most, left, foot, scale)
    pitch = _PANEL / len(names)
    width = min(0.5 * pitch, 60)
    for i, name in enumerate(names):
        x = left + (i + 0.5) * pitch
        scene.box(x - width / 2, foot - measured[i] * scale, width, measured[i] * scale, COMPUTE.colour)
        high = foot - predicted[i] * scale
        for x0, y0, x1, y1 in (
            (x - width / 2, foot, x - width / 2, high),
            (x - width / 2, high, x + width / 2, high),
            (x + width / 2, high, x + width / 2, foot),
        ):
            scene.line(x0, y0, x1, y1, INK, 1.4)
        full = foot - ideal[i] * scale
        scene.line(x - 0.8 * width, full, x + 0.8 * width, full, FAINT, 1.6)
        above = min(high, full, foot - measured[i] * scale) - 6
        inside = min(predicted[i], measured[i], ideal[i]) * scale
        number = form.format(measured[i])
        if inside >= _NUMBER:
            scene.write(x, foot - inside / 2, number, SMALL, colour=ink_on(COMPUTE.colour))
        else:
            lines = [*lines[:i], f"{number} of {lines[i]}" if lines[i] else number, *lines[i + 1 :]]
        if lines[i]:
            scene.write(x, above, lines[i], SMALL, rise="bottom")
        scene.write(x, foot + 12, name, SMALL)
    scene.line(left, foot, left + _PANEL, foot, INK)
    scene.write(left - 6, foot + 12, "ranks", SMALL, align="right")


def _draw_axis(scene: Scene, most: float, left: float, foot: float, scale: float) -> None:
    scene.line(left, foot, left, foot - most * scale, INK)
    steps = round_steps(most, binary=False, count=3) if most > 2 else [0.0, 0.5, 1.0]
    for step in steps:
        y = foot - step * scale
        scene.line(left - 5, y, left, y, INK)
        scene.write(left - 9, y, f"{step:g}", SMALL, align="right")


def _check(predicted: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[float]]) -> None:
    if not predicted or set(predicted) != set(measured):
        raise ValueError(
            f"predicted has {', '.join(predicted) or 'no labels'}, measured has {', '.join(measured) or 'no labels'}: "
            "give both the same labels, at least one"
        )
    for label, laws in predicted.items():
        if len(laws) != len(measured[label]) or not laws or laws[0].world_size != 1:
            raise ValueError(
                f"{label} has {len(laws)} predictions and {len(measured[label])} measurements: give one of each "
                "for each number of ranks, 1 rank first"
            )
