"""Predicted throughput against published: a scatter, coloured by source, and the same as a table of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from utils.theory.scale.misses import cause
from utils.theory.scale.score import Scored, summary
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, MEANINGS, SMALL, TITLE, rank_colour

HEIGHT = 560
_LEFT, _TOP, _SIZE = 70, 56, 450
_KEY = _LEFT + _SIZE + 40
_DOT = 7
_BAND = 0.10  # lines this far on either side of equality
NAMED_MISS = 0.25  # an error beyond this is named in the picture's words


def published_picture(rows: Sequence[Scored], title: str = "Published runs: predicted against published") -> Picture:
    """MFU predicted over MFU published, both axes alike; calibration rows are empty squares."""
    board = Board(HEIGHT, WIDTH)
    board.show(published_scene(rows, title))
    return Picture(board.figure, published_words(rows, title))


def published_scene(rows: Sequence[Scored], title: str) -> Scene:
    """The scene that `published_picture` shows."""
    scene, shown = Scene(), [row for row in rows if not row.run.left_out]
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    tops = [row.run.mfu for row in shown] + [_predicted_mfu(row) for row in shown]
    most = math.ceil(10 * max(tops, default=0.1)) / 10
    x, y = (lambda mfu: _LEFT + mfu / most * _SIZE), (lambda mfu: _TOP + _SIZE - mfu / most * _SIZE)
    _draw_axes(scene, most, x, y)
    colours = source_colours(rows)
    for row in shown:
        across, up = x(row.run.mfu), y(_predicted_mfu(row))
        fill = "#FFFFFF" if row.calibration else colours[_family(row)]
        scene.box(across - _DOT / 2, up - _DOT / 2, _DOT, _DOT, fill, edge=colours[_family(row)])
    scene.write(_KEY, _TOP + 4, "source", SMALL, align="left", bold=True)
    for i, (name, colour) in enumerate(colours.items()):
        place = _TOP + 28 + 22 * i
        scene.box(_KEY, place - 5, 10, 10, colour)
        count = sum(_family(row) == name for row in shown)
        scene.write(_KEY + 18, place, f"{name}: {count} rows", SMALL, align="left")
    foot = _TOP + 28 + 22 * len(colours) + 14
    scene.box(_KEY, foot - 5, 10, 10, "#FFFFFF", edge=INK)
    scene.write(_KEY + 18, foot, "calibration row, not scored", SMALL, align="left")
    found = summary(rows)
    for i, line in enumerate(
        (
            f"{found.rows} rows scored",
            f"model: median {found.median:.1%}, 90th {found.p90:.1%}",
            f"constant MFU: {found.baseline_median:.1%}, {found.baseline_p90:.1%}",
            f"the best constant: {found.best_median:.1%}, {found.best_p90:.1%}",
        )
    ):
        scene.write(_KEY, foot + 40 + 22 * i, line, SMALL, align="left", bold=i == 1)
    return scene


def published_words(rows: Sequence[Scored], title: str) -> str:
    """The score, and every miss beyond 25%, in words."""
    found = summary(rows)
    misses = [row for row in rows if row.counts and abs(row.error) > NAMED_MISS]
    named = "; ".join(f"{row.run.name} ({row.error:+.0%})" for row in sorted(misses, key=lambda row: row.error))
    return (
        f"{title}. {found.rows} rows scored: the model's error has a median of {found.median:.1%} and a 90th "
        f"percentile of {found.p90:.1%}; a constant MFU per GPU type and precision {found.baseline_median:.1%} and "
        f"{found.baseline_p90:.1%}, the best such constant {found.best_median:.1%} and {found.best_p90:.1%}. "
        f"Misses beyond {NAMED_MISS:.0%}: {named or 'none'}."
    )


def source_colours(rows: Sequence[Scored]) -> dict[str, str]:
    """A colour for each source, in the order in which they appear; past the strong ones from pink, no second blue."""
    strong = [style.colour for style in MEANINGS if style is not COMMUNICATION]
    names = list(dict.fromkeys(_family(row) for row in rows))
    return {name: strong[i] if i < len(strong) else rank_colour(i - len(strong) + 4) for i, name in enumerate(names)}


@dataclass(frozen=True)
class PublishedTable:
    """Row by row: published, predicted, error, the baseline's error, and what was assumed. Draws itself as HTML."""

    rows: tuple[Scored, ...]

    def __init__(self, rows: Sequence[Scored]) -> None:
        object.__setattr__(self, "rows", tuple(rows))

    def lines(self) -> list[tuple[str, ...]]:
        """The cells, without a head."""
        return [_cells(row) for row in self.rows]

    def __repr__(self) -> str:
        return "\n".join("  ".join(cell for cell in line if cell) for line in self.lines())

    def _repr_html_(self) -> str:
        head = ("run", "GPU", "tokens/s/GPU", "predicted", "error", "constant MFU", "notes")
        top = "".join(f'<th scope="col">{each}</th>' for each in head)
        body = "".join(
            f'<tr><th scope="row">{escape(line[0])}</th>' + "".join(f"<td>{escape(c)}</td>" for c in line[1:]) + "</tr>"
            for line in self.lines()
        )
        return f"<table><caption>Published runs, row by row</caption><tr>{top}</tr>{body}</table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}


def _cells(row: Scored) -> tuple[str, ...]:
    run = row.run
    notes = [run.left_out and f"left out: {run.left_out}", "calibration" if row.calibration else "", run.assumed]
    if abs(row.error) > NAMED_MISS and cause(run):
        notes.append(f"missed: {cause(run)}")
    return (
        run.name,
        f"{run.job.gpus:,} x {run.machine.gpu.name}",
        f"{run.per_gpu:,.0f}" if run.per_gpu >= 100 else f"{run.per_gpu:.1f}",
        f"{row.prediction.per_gpu:,.0f}" if row.prediction.per_gpu >= 100 else f"{row.prediction.per_gpu:.1f}",
        f"{row.error:+.1%}",
        f"{row.baseline:+.1%}",
        "; ".join(note for note in notes if note),
    )


def _draw_axes(scene: Scene, most: float, x: Any, y: Any) -> None:
    scene.line(x(0), y(0), x(most), y(0), INK)
    scene.line(x(0), y(0), x(0), y(most), INK)
    scene.line(x(0), y(0), x(most), y(most), INK, 1.4)
    scene.line(x(0), y(0), x(most / (1 + _BAND)), y(most), FAINT)
    scene.line(x(0), y(0), x(most), y(most * (1 - _BAND)), FAINT)
    for tenth in range(0, round(10 * most) + 1, 2):
        share = tenth / 10
        scene.line(x(share), y(0), x(share), y(0) + 5, INK)
        scene.write(x(share), y(0) + 16, f"{share:.0%}", SMALL)
        scene.line(x(0) - 5, y(share), x(0), y(share), INK)
        scene.write(x(0) - 9, y(share), f"{share:.0%}", SMALL, align="right")
    scene.write(x(most / 2), y(0) + 38, "MFU published (6 N + 12 L h s, of the precision's peak)", SMALL)
    scene.write(18, y(most / 2), "MFU predicted", SMALL, upright=True)


def _predicted_mfu(row: Scored) -> float:
    return row.run.mfu * (1 + row.error)


def _family(row: Scored) -> str:
    """The source in a word or two: "NeMo" of "NeMo long sequences"."""
    name = row.run.table.split(",")[0]
    for family in ("Megatron SC21", "Korthikanti", "IBM/Meta", "FSDP p", "NeMo"):
        if name.startswith(family):
            return {"FSDP p": "FSDP paper and post"}.get(family, family)
    return {"fms-fsdp": "IBM/Meta"}.get(name, name)
