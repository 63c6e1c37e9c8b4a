"""The few pieces of HTML and aligned text that verdicts, scoreboards and comparisons are drawn with.

Everything here is a pure function of its arguments, so that what a notebook stores is the same on every run.
Colours are colour-blind-safe (Okabe-Ito) and never carry a meaning alone: a word always stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

GOOD, MIDDLING, BAD, NEUTRAL = "#009E73", "#E69F00", "#D55E00", "#8A8A8A"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by spaces: first and last to the left, the others, which hold numbers, to the right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "   ".join(
            cell.ljust(width) if _side(column, len(line)) == "left" else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str] | None = None) -> str:
    """The same table in HTML; `colours` gives each row's last cell a left edge in that colour."""
    head = "".join(
        f"<th style='text-align:{_side(i, len(header))}'>{escape(cell)}</th>" for i, cell in enumerate(header)
    )
    body = []
    for number, row in enumerate(rows):
        cells = []
        for i, cell in enumerate(row):
            edge = f";border-left:4px solid {colours[number]}" if colours and i == len(row) - 1 else ""
            cells.append(f"<td style='text-align:{_side(i, len(row))}{edge}'>{escape(cell)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def html_box(colour: str, inner: str) -> str:
    """A block with a coloured left edge; `inner` is HTML already."""
    return f"<div style='border-left:6px solid {colour};padding:0.3em 0.8em;margin:0.3em 0'>{inner}</div>"


def _side(column: int, columns: int) -> str:
    return "left" if column in (0, columns - 1) else "right"
