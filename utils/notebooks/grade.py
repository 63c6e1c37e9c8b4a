"""Judges a lab that somebody has worked in: its answers, by this repository's own checks, in a kernel of its own.

Of a submission count the answers, the cells given for them, and those that its author has added. The checks are this
repository's, so an edited or deleted check cell changes nothing, nor does a name of these modules that a cell binds
anew; what a lab shows and measures besides is not run.

Answers are programs and run as whoever calls this, in the process that judges them or beside it. Who means to deceive
still can: change PyTorch, find the checks' own objects in memory, write into this repository's files. Nor is it judged
whose an answer is; solutions/ lies beside the labs. Judge strangers' work in a container for each, with this repository
read-only.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from utils.checks.exercise import Exercise, exercises_of
from utils.notebooks.answers import answer_id, find_solution
from utils.notebooks.build_labs import IMPORTS, STAMP, lab_from
from utils.notebooks.errors import NotebookError, in_a_line
from utils.notebooks.execute import run_notebook
from utils.notebooks.files import ROOT, read_notebook, tags_of
from utils.notebooks.submission import read_submission

PASSED, NOT_JUDGED = "passed", "not judged"
_START = "__import__('utils.notebooks.judge').notebooks.judge.prepare({lab!r}, {token!r}, globals())"
_CHECK = "import {token}\n{token}.judge({id!r}, {name!r})"


@dataclass(frozen=True)
class Judged:
    """One exercise of a submission. state: "passed", "mistake", "not begun", or "not judged" where no check came to an
    end; message: what the check says, or why there is none."""

    exercise_id: str
    state: str
    message: str


@dataclass(frozen=True)
class Graded:
    """A submission: its path, its lab ("05"), how each exercise of the lab stands, and whether what was handed out was
    another version of the lab than the one that is here."""

    path: Path
    lab: str
    exercises: tuple[Judged, ...]
    other_version: bool = False

    @property
    def passed(self) -> int:
        return sum(each.state == PASSED for each in self.exercises)


def grade(path: Path, timeout: float = 300) -> Graded:
    """Judge the submission at `path`. timeout: seconds for one cell or one check.

    Raises NotebookError for what is no notebook, or holds no answer of a lab.
    """
    path = Path(path)
    submission = read_submission(path)
    lab = _lab_of(submission, path)
    where = find_solution(lab)
    solution = read_notebook(where)
    exercises, token = exercises_of(lab), f"judge_{secrets.token_hex(8)}"
    cells, checks = _arranged(submission, solution, exercises, token)
    start = nbformat.v4.new_code_cell(_START.format(lab=lab, token=token))
    ended, how = _run([start, *cells], timeout)
    if (failed := _raised(start)) is not None:
        why = f"{failed.ename}: {failed.evalue}".rstrip(": ")
        raise NotebookError(
            f"{path} is not judged: no kernel was ready in {timeout:g} seconds ({why}); give it longer."
        )
    answers = {answer_id(cell): cell for cell in cells}
    judged = (_judged(each, checks[each.id], answers.get(each.id), token, ended, how, timeout) for each in exercises)
    built, expected = submission.metadata.get(STAMP), lab_from(solution, where).metadata[STAMP]
    return Graded(path, lab, tuple(judged), isinstance(built, str) and built != expected)


def _run(cells: list[NotebookNode], timeout: float) -> tuple[NotebookNode | None, str]:
    """Run the cells in a kernel of their own. Returns (the cell after which none was run, if there is one, why)."""
    notebook = nbformat.v4.new_notebook(cells=cells)
    # What was submitted may leave files and processes that write them.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, "work").mkdir()
        # Of IPython's own files nothing reaches this kernel, and what it changes there reaches no other.
        apart = {"IPYTHONDIR": str(Path(folder, "ipython"))}
        try:
            path = Path(folder, "work", "submission.ipynb")
            run_notebook(notebook, path, allow_errors=True, timeout=timeout, go_on=True, environment=apart)
        except Exception as error:  # a kernel whose own modules were changed may send anything
            last = next((cell for cell in reversed(cells) if cell.execution_count is not None), cells[0])
            if not isinstance(error, NotebookError):
                return last, "broke the kernel"
            return last, "ended the kernel" if "ended the kernel" in str(error) else "could not be interrupted"
    return None, ""


def _lab_of(submission: NotebookNode, path: Path) -> str:
    """The lab of which it holds most answers: of another one there may be some that its author has copied."""
    known = _answer_cells()  # some tools lose tags, and keep ids
    labs: Counter[str] = Counter()
    for cell in submission.cells:
        of_cell = {(answer_id(cell) or "").partition(".")[0], known.get(cell.id, "")}
        labs.update(of_cell & set(known.values()))
    most = [lab for lab in sorted(labs) if labs[lab] == max(labs.values())]
    if len(most) != 1:
        what = f"as many answers of labs {' and '.join(most)}" if most else "no answer cell of a lab"
        raise NotebookError(f"{path} holds {what}: give a notebook of labs/ that has been worked in.")
    return most[0]


@cache
def _answer_cells() -> dict[str, str]:
    """By the id of each answer cell of the solutions, its lab."""
    notebooks = map(read_notebook, sorted((ROOT / "solutions").glob("*.ipynb")))
    cells = [cell for notebook in notebooks for cell in notebook.cells]
    return {cell.id: exercise.partition(".")[0] for cell in cells if (exercise := answer_id(cell))}


def _arranged(
    submission: NotebookNode, solution: NotebookNode, exercises: tuple[Exercise, ...], token: str
) -> tuple[list[NotebookNode], dict[str, NotebookNode]]:
    """(the cells to run, each exercise's check among them): a check stands where it stands in the lab."""
    own = {cell.id: cell for cell in solution.cells}
    checks = {
        each.id: nbformat.v4.new_code_cell(_CHECK.format(id=each.id, name=each.name, token=token)) for each in exercises
    }
    place = {cell.id: each.id for cell in own.values() for each in exercises if _checks(cell, each)}
    there = {cell.id for cell in submission.cells if cell.cell_type == "code"}
    # What is given for the answers and was deleted comes first, as it is in the lab.
    given = [cell for cell in own.values() if IMPORTS in tags_of(cell) and cell.id not in there]
    cells = [nbformat.v4.new_code_cell(cell.source) for cell in given]
    for cell in submission.cells:
        known = own.get(cell.id, cell)
        if cell.id in place:
            cells.append(checks[place[cell.id]])
        elif cell.cell_type == "code" and (cell.id not in own or IMPORTS in tags_of(known) or answer_id(known)):
            cells.append(nbformat.v4.new_code_cell(cell.source, metadata={"tags": tags_of(known)}))
    return cells + [check for check in checks.values() if not any(check is cell for cell in cells)], checks


def _checks(cell: NotebookNode, exercise: Exercise) -> bool:
    """Whether a cell of the solution is the exercise's check."""
    return cell.cell_type == "code" and cell.source.strip() == f'check("{exercise.id}", {exercise.name})'


def _judged(
    exercise: Exercise,
    check: NotebookNode,
    answer: NotebookNode | None,
    token: str,
    ended: NotebookNode | None,
    how: str,
    timeout: float,
) -> Judged:
    told = [each.data[token] for each in check.get("outputs", ()) if token in each.get("data", {})]
    if ended is check or not told:  # a verdict shown by what then ends the kernel is none
        return Judged(exercise.id, NOT_JUDGED, _why_not(check, ended, how, timeout))
    state, message = json.loads(told[-1])
    raised = _raised(answer)
    if state == "not begun" and answer is None:
        message = "its answer cell is missing."
    elif state == "not begun" and raised is not None:
        state, message = "mistake", f"the answer's cell raised {raised.ename}: {raised.evalue}"
    return Judged(exercise.id, state, in_a_line(message))


def _why_not(check: NotebookNode, ended: NotebookNode | None, how: str, timeout: float) -> str:
    raised = _raised(check)
    if ended is check:
        return f"the check {how}."
    if ended is not None:
        return f"a cell before it {how}."
    if raised is not None and raised.ename != "KeyboardInterrupt":  # with which a cell that takes too long is ended
        return in_a_line(f"the check could not be run, {raised.ename}: {raised.evalue}")
    return f"the check did not end within {timeout:g} seconds."


def _raised(cell: NotebookNode | None) -> NotebookNode | None:
    return next((each for each in (cell or {}).get("outputs", ()) if each.output_type == "error"), None)
