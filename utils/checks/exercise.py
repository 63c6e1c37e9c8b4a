"""An exercise: what is asked, its hints, and the function that judges an answer. One module per lab declares them.

The module of lab 01 is `utils.checks.lab01`; it holds `EXERCISES`, in the order of the notebook. Modules are imported
when one of their exercises is first asked for.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, Literal

import utils.checks
from utils.checks.verdict import with_article


@dataclass(frozen=True)
class Exercise:
    """One thing to build.

    id          "01.average_gradients": the lab, a point, the name of the function to write
    title       what is built, in a few words
    difficulty  1 to 5
    minutes     what most people need
    parameters  the names of the arguments with which the check calls the answer
    hints       three, each saying more than the one before; `code` between backticks
    verify      answer -> what was verified, in words. Raises Mistake or NotBegun; errors of ranks may pass through
    wants       "function", or "text" for an answer that is a program's source
    """

    id: str
    title: str
    difficulty: int
    minutes: int
    parameters: tuple[str, ...]
    hints: tuple[str, str, str]
    verify: Callable[[Any], str]
    wants: Literal["function", "text"] = "function"

    @property
    def name(self) -> str:
        """The id without its lab: the name of the function to write."""
        return self.id.partition(".")[2]


class UnknownExercise(ValueError):
    """There is no exercise of that id. A notebook shows the sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def lab_names() -> tuple[str, ...]:
    """The labs that have checks: "00", "01", ..."""
    names = [module.name for module in pkgutil.iter_modules(utils.checks.__path__)]
    return tuple(sorted(name[3:] for name in names if name.startswith("lab") and name[3:].isdigit()))


def exercises_of(lab: str) -> tuple[Exercise, ...]:
    """A lab's exercises in the order of its notebook. Raises UnknownExercise, naming the labs there are."""
    if lab not in lab_names():
        raise UnknownExercise(f"There are no checks for lab {lab!r}; there are for {', '.join(lab_names())}.")
    return _exercises_of(lab)


@cache
def _exercises_of(lab: str) -> tuple[Exercise, ...]:
    return import_module(f"utils.checks.lab{lab}").EXERCISES


def find_exercise(exercise_id: Any) -> Exercise:
    """The exercise of that id. Raises UnknownExercise with the nearest id there is."""
    if not isinstance(exercise_id, str):
        kind = with_article(type(exercise_id).__name__)
        raise UnknownExercise(f"An exercise is named by text such as '01.average_gradients', not by {kind}.")
    lab, point, name = exercise_id.partition(".")
    labs = [lab] if lab in lab_names() else lab_names()
    known = {exercise.id: exercise for each in labs for exercise in exercises_of(each)}
    if exercise_id in known:
        return known[exercise_id]
    same_name = [each for each in known if each.endswith(f".{name if point else exercise_id}")]
    near = same_name or get_close_matches(exercise_id, known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    raise UnknownExercise(f"There is no exercise {exercise_id!r}; {remedy}")
