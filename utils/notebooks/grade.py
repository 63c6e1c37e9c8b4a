"""Judges a lab that somebody has worked in: its answers, by this repository's own checks, in a kernel of its own.

Of a submission count the answers, the cells given for them, and those that its author has added. The checks are this
repository's, so an edited or deleted check cell changes nothing; what a lab shows and measures besides is not run.
Answers are programs and run as whoever calls this: judge strangers' work in a container.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from utils.checks.exercise import Exercise, exercises_of
from utils.notebooks.build_labs import ANSWER, IMPORTS
from utils.notebooks.errors import NotebookError
from utils.notebooks.execute import run_notebook
from utils.notebooks.files import ROOT, read_notebook, tags_of

PASSED, NOT_JUDGED = "passed", "not judged"
_CHECK = """\
import builtins as _b, json as _json
import utils as _suite
_told = _suite.check({id!r}, _b.globals().get({name!r}))
_b.print("\\n" + {token!r} + _json.dumps([_told.state, _told.message]))
"""


@dataclass(frozen=True)
class Judged:
    """One exercise of a submission. state: "passed", "mistake", "not begun", or "not judged" where no check came to an
    end; message: what the check says, or why there is none."""

    exercise_id: str
    state: str
    message: str


@dataclass(frozen=True)
class Graded:
    """A submission: its path, its lab ("05"), and how each exercise of the lab stands."""

    path: Path
    lab: str
    exercises: tuple[Judged, ...]

    @property
    def passed(self) -> int:
        return sum(each.state == PASSED for each in self.exercises)


def submissions(paths: Iterable[Path]) -> list[Path]:
    """The notebooks at `paths` and in the folders among them, hidden ones left out; each once, in order."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        for each in inside:
            if not any(part.startswith(".") for part in each.relative_to(path).parts[:-1]):
                found[each] = None
    return list(found)


def grade(path: Path, timeout: float = 300) -> Graded:
    """Judge the submission at `path`. timeout: seconds for one cell or one check.

    Raises NotebookError for what is no notebook, or holds no answer of a lab.
    """
    submission = read_notebook(path)
    lab = _lab_of(submission, path)
    solution = read_notebook(next((ROOT / "solutions").glob(f"{lab}_*.ipynb")))
    exercises, token = exercises_of(lab), secrets.token_hex(8)
    cells, checks = _arranged(submission, solution, exercises, token)
    notebook = nbformat.v4.new_notebook(cells=cells)
    ended = ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_notebook(notebook, Path(folder, path.name), allow_errors=True, timeout=timeout, go_on=True)
        except NotebookError:
            ended = "a cell before it ended the kernel"
    answers = {exercise: cell for cell in cells for exercise in _answered(cell)}
    judged = (_judged(each, checks[each.id], answers.get(each.id), token, ended, timeout) for each in exercises)
    return Graded(Path(path), lab, tuple(judged))


def _lab_of(submission: NotebookNode, path: Path) -> str:
    """The lab whose answers it holds."""
    known = _answer_cells()  # some tools lose tags, and keep ids
    labs = {known[cell.id] for cell in submission.cells if cell.id in known}
    labs |= {exercise.partition(".")[0] for cell in submission.cells for exercise in _answered(cell)}
    labs &= set(known.values())
    if len(labs) != 1:
        what = f"the answers of labs {', '.join(sorted(labs))}" if labs else "no answer cell of a lab"
        raise NotebookError(f"{path} holds {what}: give a notebook of labs/ that has been worked in.")
    return labs.pop()


@cache
def _answer_cells() -> dict[str, str]:
    """By the id of each answer cell of the solutions, its lab."""
    notebooks = map(read_notebook, sorted((ROOT / "solutions").glob("*.ipynb")))
    cells = [cell for notebook in notebooks for cell in notebook.cells]
    return {cell.id: exercise.partition(".")[0] for cell in cells for exercise in _answered(cell)}


def _answered(cell: NotebookNode) -> Iterator[str]:
    return (tag.removeprefix(ANSWER) for tag in tags_of(cell) if tag.startswith(ANSWER))


def _arranged(
    submission: NotebookNode, solution: NotebookNode, exercises: tuple[Exercise, ...], token: str
) -> tuple[list[NotebookNode], dict[str, NotebookNode]]:
    """(the cells to run, each exercise's check among them): a check stands where it stands in the lab."""
    own = {cell.id: cell for cell in solution.cells}
    checks = {
        each.id: nbformat.v4.new_code_cell(_CHECK.format(id=each.id, name=each.name, token=token)) for each in exercises
    }
    place = {cell.id: each.id for cell in own.values() for each in exercises if _checks(cell, each)}
    there = {cell.id for cell in submission.cells}
    # What is given for the answers and was deleted comes first, as it is in the lab.
    given = [cell for cell in own.values() if IMPORTS in tags_of(cell) and cell.id not in there]
    cells = [nbformat.v4.new_code_cell(cell.source) for cell in given]
    for cell in submission.cells:
        known = own.get(cell.id, cell)
        if cell.id in place:
            cells.append(checks[place[cell.id]])
        elif cell.cell_type == "code" and (cell.id not in own or IMPORTS in tags_of(known) or any(_answered(known))):
            cells.append(nbformat.v4.new_code_cell(cell.source, metadata={"tags": tags_of(known)}))
    return cells + [check for check in checks.values() if not any(check is cell for cell in cells)], checks


def _checks(cell: NotebookNode, exercise: Exercise) -> bool:
    """Whether a cell of the solution is the exercise's check."""
    return cell.cell_type == "code" and cell.source.strip() == f'check("{exercise.id}", {exercise.name})'


def _judged(
    exercise: Exercise, check: NotebookNode, answer: NotebookNode | None, token: str, ended: str, timeout: float
) -> Judged:
    told = [line for line in _text(check).splitlines() if line.startswith(token)]
    if not told:
        why = ended or f"the check did not end within {timeout:g} seconds"
        return Judged(exercise.id, NOT_JUDGED, f"{why}.")
    state, message = json.loads(told[-1].removeprefix(token))
    raised = next((each for each in (answer or {}).get("outputs", ()) if each.output_type == "error"), None)
    if state == "not begun" and answer is None:
        message = "its answer cell is missing."
    elif state == "not begun" and raised is not None:
        state, message = "mistake", f"the answer's cell raised {raised.ename}: {raised.evalue}"
    return Judged(exercise.id, state, message)


def _text(cell: NotebookNode) -> str:
    return "".join(each.text for each in cell.get("outputs", ()) if each.output_type == "stream")
