"""Predicted against measured bytes, by rank: one row a collective, what was sent on the left, received on the right.

A bar's filling is measured, its outline predicted; where they part, the number is bold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from utils.theory.units import format_bytes
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, PAPER, SMALL, TITLE

TOLERANCE = 0.02  # of S: below it, measured and predicted count as equal (headers of gloo and TCP are well below)

_TOP, _BAR_HEIGHT = 74, 52
_NUMBERS, _NUMBERS_UPRIGHT = 26, 50  # pixels between a heading and the highest bar: room for the numbers
_PANEL_WIDTH = 344
_PANELS = (("sent", 70), ("received", WIDTH - _PANEL_WIDTH - 16))


def sent_picture(
    predicted: Mapping[str, Sequence[Any]],
    measured: Mapping[str, Sequence[Any] | None],
    total_bytes: float,
    title: str = "Bytes that each rank sent and received",
) -> Picture:
    """Bars by rank for one or several collectives of `total_bytes` (S) each.

    predicted: label -> by rank something with `.sent` and `.received` in bytes, as `traffic_by_rank` gives.
    measured: label -> the same from a counter, as `run.wire_bytes` is; None where there is no such counter.
    Raises ValueError if the labels differ or a label's rows have different numbers of ranks.
    """
    _check(predicted, measured, total_bytes)
    shares = {label: _shares(rows, measured[label], total_bytes) for label, rows in predicted.items()}
    board = Board(_TOP + _row_height(shares) * len(shares), WIDTH)
    board.show(_scene(shares, total_bytes, title))
    return Picture(board.figure, _words(shares, total_bytes, title))


# By direction: (predicted, measured or None) in S, by rank.
_Shares = dict[str, list[tuple[float, float | None]]]


def _shares(predicted: Sequence[Any], measured: Sequence[Any] | None, total_bytes: float) -> _Shares:
    return {
        direction: [
            (getattr(p, direction) / total_bytes, None if m is None else getattr(m, direction) / total_bytes)
            for p, m in zip(predicted, measured or [None] * len(predicted), strict=True)
        ]
        for direction, _ in _PANELS
    }


def _differs(predicted: float, measured: float | None) -> bool:
    return measured is not None and abs(predicted - measured) > TOLERANCE


def _row_height(shares: dict[str, _Shares]) -> int:
    return _room(shares) + _BAR_HEIGHT + 36


def _room(shares: dict[str, _Shares]) -> int:
    most_ranks = max(len(pairs) for sides in shares.values() for pairs in sides.values())
    return _NUMBERS_UPRIGHT if most_ranks > 8 else _NUMBERS


def _scene(shares: dict[str, _Shares], total_bytes: float, title: str) -> Scene:
    scene = Scene()
    left = _PANELS[0][1]
    most = max(
        [2.0, *(value or 0 for row in shares.values() for side in row.values() for pair in side for value in pair)]
    )
    scene.write(left, 18, title, TITLE, align="left", bold=True)
    _draw_key(scene, left, 39, total_bytes)
    for row, (label, sides) in enumerate(shares.items()):
        top = _TOP + row * _row_height(shares)
        for direction, x in _PANELS:
            scene.write(x, top, f"{label}: {direction} by each rank", align="left", bold=True)
            _draw_bars(scene, sides[direction], x, top + _room(shares) + _BAR_HEIGHT, _BAR_HEIGHT / most)
    return scene


def _draw_key(scene: Scene, x: float, y: float, total_bytes: float) -> None:
    scene.box(x, y - 6, 12, 12, COMMUNICATION.colour)
    scene.write(x + 18, y, "measured", align="left")
    scene.box(x + 96, y - 6, 12, 12, PAPER, edge=INK)
    scene.write(x + 114, y, "predicted", align="left")
    scene.write(x + 192, y, f"in units of S = {format_bytes(total_bytes)}; bold where the two differ", align="left")


def _draw_bars(
    scene: Scene, pairs: list[tuple[float, float | None]], left: float, foot: float, pixels_per_S: float
) -> None:
    n = len(pairs)
    pitch = _PANEL_WIDTH / n
    width = min(0.6 * pitch, 34)
    scene.line(left, foot, left + _PANEL_WIDTH, foot, INK)
    for rank, (predicted, measured) in enumerate(pairs):
        x = left + (rank + 0.5) * pitch
        if measured is None:
            text = "?"
        else:
            height = measured * pixels_per_S
            scene.box(x - width / 2, foot - height, width, height, COMMUNICATION.colour)
            text = f"{measured:.2f}"
        _outline(scene, x - width / 2, foot - predicted * pixels_per_S, width, foot)
        top = foot - max(predicted, measured or 0) * pixels_per_S - 4
        bold = _differs(predicted, measured)
        scene.write(x, top, text, SMALL, rise="bottom", bold=bold, upright=n > 8)
        scene.write(x, foot + 10, f"{rank}", SMALL)
    scene.write(left - 6, foot + 10, "rank", SMALL, align="right", colour=INK)
    scene.write(left - 6, foot - 2 * pixels_per_S, "2 S", SMALL, align="right", colour=INK)
    scene.line(left - 3, foot - 2 * pixels_per_S, left + 3, foot - 2 * pixels_per_S, FAINT)


def _outline(scene: Scene, left: float, top: float, width: float, foot: float) -> None:
    """Three sides of the predicted bar; where it has no height, nothing."""
    if top >= foot:
        return
    for x0, y0, x1, y1 in (
        (left, foot, left, top),
        (left, top, left + width, top),
        (left + width, top, left + width, foot),
    ):
        scene.line(x0, y0, x1, y1, INK, 1.4)


def _words(shares: dict[str, _Shares], total_bytes: float, title: str) -> str:
    lines = [f"{title}, in units of S = {format_bytes(total_bytes)}, rank by rank."]
    for label, sides in shares.items():
        for direction, pairs in sides.items():
            predicted = _listed(p for p, _ in pairs)
            if any(m is None for _, m in pairs):
                lines.append(f"{label}, {direction}: predicted {predicted}; not measurable here.")
            elif any(_differs(p, m) for p, m in pairs):
                lines.append(f"{label}, {direction}: predicted {predicted}; measured {_listed(m for _, m in pairs)}.")
            else:
                lines.append(f"{label}, {direction}: predicted {predicted}; measured the same within {TOLERANCE:g} S.")
    return "\n".join(lines)


def _listed(values: Any) -> str:
    shown = [f"{value:.2f}" for value in values]
    return f"{shown[0]} on every rank" if len(set(shown)) == 1 else ", ".join(shown)


def _check(
    predicted: Mapping[str, Sequence[Any]], measured: Mapping[str, Sequence[Any] | None], total_bytes: float
) -> None:
    if not predicted or set(predicted) != set(measured):
        raise ValueError(
            f"predicted has {', '.join(predicted) or 'no labels'}, measured has {', '.join(measured) or 'no labels'}: "
            "give both the same labels, at least one"
        )
    if not total_bytes > 0:
        raise ValueError(f"total_bytes is {total_bytes!r}; the picture's unit is S: give a number of bytes above 0")
    for label, rows in predicted.items():
        found = measured[label]
        if found is not None and len(found) != len(rows):
            raise ValueError(
                f"{label} has {len(rows)} ranks predicted and {len(found)} measured: give one of each per rank"
            )
