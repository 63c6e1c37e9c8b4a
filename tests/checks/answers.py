"""Finds the answers in tests/wrong_answers/ and tests/right_answers/, and judges them.

Each file overrides one function of a lab, whose name is the exercise's. All else that it calls comes from the lab's
solution. A wrong answer's docstring is a phrase that its verdict must hold.
"""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from utils.checks import Verdict, check
from utils.checks.exercise import exercises_of
from utils.notebooks.answers import load_answers
from utils.notebooks.files import ROOT

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Answer:
    """One file: its path, the exercise that it answers, and its docstring."""

    path: Path
    exercise_id: str
    docstring: str

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def judged(self) -> Verdict:
        text, name = self.path.read_text(), str(self.path)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        # A module name that cannot be imported, so that the function is sent to the ranks by value.
        namespace: dict[str, Any] = {**_solution(self.path.parent.name), "__name__": f"answer_{self.path.stem}"}
        exec(compile(text, name, "exec"), namespace)
        return check(self.exercise_id, namespace[self.exercise_id.partition(".")[2]])


def answers_in(kind: str) -> list[Answer]:
    """Every answer in tests/`kind`/."""
    return [_read(path) for path in sorted((TESTS / kind).glob("[0-9][0-9]/*.py"))]


def _read(path: Path) -> Answer:
    lab, tree = path.parent.name, ast.parse(path.read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = [exercise.id for exercise in exercises_of(lab) if exercise.name in defined]
    if len(found) != 1:
        raise ValueError(f"{path} should define the function of exactly one exercise of lab {lab}; it has {found}")
    return Answer(path, found[0], " ".join((ast.get_docstring(tree) or "").split()))


@cache
def _solution(lab: str) -> dict[str, Any]:
    """The lab's answers, and the functions that its notebook gives to the learner."""
    if not list((ROOT / "solutions").glob(f"{lab}_*.ipynb")):
        return {}
    names = load_answers(lab, "solutions").names
    notebook = next(value.__globals__ for value in names.values() if isinstance(value, FunctionType))
    given = {n: f for n, f in notebook.items() if isinstance(f, FunctionType) and f.__globals__ is notebook}
    return given | dict(names)
