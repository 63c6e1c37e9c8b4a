"""Points for predictions: by how far off each is."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from utils.checks.drawing import BAD, GOOD, MIDDLING, html_table, text_table

#: An error of at most this share of what was measured -> points.
BANDS = ((0.05, 3), (0.10, 2), (0.25, 1))
MOST = BANDS[0][1]
HEADER = ("", "predicted", "measured", "off by", "points")


def points(predicted: float, measured: float) -> int:
    """3 within 5 %, 2 within 10 %, 1 within 25 % of what was measured, else 0."""
    error = abs(predicted - measured)
    return next((given for share, given in BANDS if error <= share * abs(measured)), 0)


@dataclass(frozen=True)
class Score:
    """Predictions beside measurements: label -> (predicted, measured, a text for each). Draws itself."""

    title: str
    rows: tuple[tuple[str, float, float, str, str], ...]

    @property
    def points(self) -> int:
        return sum(points(row[1], row[2]) for row in self.rows)

    @property
    def most(self) -> int:
        return MOST * len(self.rows)

    def cells(self) -> list[tuple[str, ...]]:
        found = []
        for label, predicted, measured, said, counted in self.rows:
            error = f"{(predicted - measured) / measured:+.1%}" if measured else ""
            found.append((label, said, counted, error.replace("-0.0%", "+0.0%"), str(points(predicted, measured))))
        return found

    def _caption(self) -> str:
        return f"{self.title}: {self.points} of {self.most} points"

    def __repr__(self) -> str:
        return f"{self._caption()}\n{text_table(HEADER, self.cells())}"

    def _repr_html_(self) -> str:
        colours = [{MOST: GOOD, 0: BAD}.get(int(cells[-1]), MIDDLING) for cells in self.cells()]
        return f"<p><b>{escape(self._caption())}</b></p>{html_table(HEADER, self.cells(), colours)}"
