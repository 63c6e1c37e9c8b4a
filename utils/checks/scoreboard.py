"""The exercises of a lab and how each stands in this session."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from utils.checks.drawing import BAD, GOOD, NEUTRAL, html_table, text_table
from utils.checks.verdict import State

HEADER = ("exercise", "difficulty", "minutes", "state")
NOT_CHECKED = "not checked yet"


@dataclass(frozen=True)
class Line:
    """One exercise: its id, difficulty from 1 to 5, minutes, and its last verdict in this session (None: none yet)."""

    exercise_id: str
    difficulty: int
    minutes: int
    state: State | None

    def cells(self) -> tuple[str, ...]:
        difficulty = "●" * self.difficulty + "○" * (5 - self.difficulty)
        return (self.exercise_id, difficulty, str(self.minutes), self.state or NOT_CHECKED)

    @property
    def colour(self) -> str:
        return {"passed": GOOD, "mistake": BAD}.get(self.state or "", NEUTRAL)


@dataclass(frozen=True)
class Scoreboard:
    """A lab's table; draws itself as text and as HTML."""

    lab: str
    lines: tuple[Line, ...]

    @property
    def passed(self) -> int:
        return sum(line.state == "passed" for line in self.lines)

    def _caption(self) -> str:
        return f"lab {self.lab}: {self.passed} of {len(self.lines)} passed"

    def __repr__(self) -> str:
        return f"{self._caption()}\n{text_table(HEADER, [line.cells() for line in self.lines])}"

    def _repr_html_(self) -> str:
        table = html_table(HEADER, [line.cells() for line in self.lines], [line.colour for line in self.lines])
        return f"<p><b>{escape(self._caption())}</b></p>{table}"
