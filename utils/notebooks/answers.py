"""Loads the answers of a lab, so that later labs, benchmarks and tests can use them.

An answer is a code cell tagged `answer:01.average_gradients`; cells tagged `answer-imports` give it the names that it
needs. All answers of a lab share one namespace, as they do in the notebook.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from utils.notebooks.answer_set import Answers
from utils.notebooks.build_labs import ANSWER, IMPORTS
from utils.notebooks.errors import NotebookError
from utils.notebooks.files import ROOT, place, read_notebook, shown, tags_of
from utils.notebooks.markers import STUB


@dataclass(frozen=True)
class _Source:
    """One cell to execute, and the notebook that it comes from."""

    notebook: Path
    cell: NotebookNode

    @property
    def file(self) -> str:
        """The file name that tracebacks show."""
        return f"{self.notebook.parent.name}/{self.notebook.name}, cell {self.cell.id}"


def load_answers(lab: str, source: str | None = None, root: Path = ROOT) -> Answers:
    """The answers of lab `lab`, executed.

    Args:
        lab: The lab's number as its file name has it, like "01".
        source: "labs" for what the learner wrote: an answer not begun is then replaced by the solution's, and a line
            says so. "solutions" for the solved lab. None takes "labs" in a notebook that runs in the folder labs/,
            else "solutions", so that a lab and its solution can contain the same cell.
        root: The folder that holds labs/ and solutions/.

    Returns:
        The names that the answer cells define. Their source lines appear in tracebacks, and they can be sent to ranks.
    """
    if source is None:
        source = "labs" if Path.cwd().resolve() == (root / "labs").resolve() else "solutions"
    if source not in ("labs", "solutions"):
        raise ValueError(f"source is {source!r}; it must be 'labs', 'solutions' or None.")
    solution = find_solution(lab, root)
    chosen, borrowed = _choose(solution, root / "labs" / solution.name if source == "labs" else None)
    names = _execute(chosen, f"answers_{solution.stem}")
    if borrowed:
        where = shown(root / "labs" / solution.name)
        print(f"Not begun in {where}, so the solution's answer is used: {', '.join(borrowed)}")
    return Answers(lab, names, borrowed)


def find_solution(lab: str, root: Path = ROOT) -> Path:
    """The solved notebook of a lab. Raises NotebookError, naming the labs there are."""
    found = sorted((root / "solutions").glob(f"{lab}_*.ipynb"))
    if len(found) != 1:
        there = sorted(path.name[:2] for path in (root / "solutions").glob("[0-9][0-9]_*.ipynb"))
        raise NotebookError(f"There is no lab {lab!r}; the labs are {', '.join(there) or 'not written yet'}.")
    return found[0]


def answer_id(cell: NotebookNode) -> str | None:
    """The exercise that the cell answers, by its tag; None if it is no answer."""
    return next((tag.removeprefix(ANSWER) for tag in tags_of(cell) if tag.startswith(ANSWER)), None)


def _choose(solution: Path, lab: Path | None) -> tuple[list[_Source], tuple[str, ...]]:
    """For each cell that belongs to the answers the learner's version or the solution's; and the ids not begun."""
    learner = _begun_answers(lab) if lab else {}
    chosen, borrowed = [], []
    for cell in read_notebook(solution).cells:
        exercise = answer_id(cell)
        if exercise in learner:
            chosen.append(_Source(lab, learner[exercise]))
        elif exercise or IMPORTS in tags_of(cell):
            chosen.append(_Source(solution, cell))
            if exercise and lab:
                borrowed.append(exercise)
    if not any(answer_id(source.cell) for source in chosen):
        raise NotebookError(f"{shown(solution)} has no cell tagged `{ANSWER}<exercise>`.")
    return chosen, tuple(borrowed)


def _begun_answers(lab: Path) -> dict[str, NotebookNode]:
    """The learner's answers that no longer hold the line they are asked to replace; none if the lab is missing."""
    cells = read_notebook(lab).cells if lab.exists() else []
    return {answer_id(cell): cell for cell in cells if answer_id(cell) and STUB not in cell.source}


def _execute(sources: list[_Source], module: str) -> dict[str, Any]:
    """Run the cells in one namespace; return what the answer cells added to it.

    The namespace has a module name that cannot be imported: cloudpickle then sends its functions by value.
    """
    namespace: dict[str, Any] = {"__name__": module}
    defined: dict[str, Any] = {}
    for source in sources:
        text = source.cell.source
        linecache.cache[source.file] = (len(text), None, text.splitlines(keepends=True), source.file)
        before = dict(namespace)
        try:
            exec(compile(text, source.file, "exec"), namespace)
        except Exception as error:
            raise NotebookError(
                f"{place(source.notebook, source.cell)} does not run ({type(error).__name__}: {error}); mend it there, "
                "or load the answers with source='solutions'."
            ) from error
        if answer_id(source.cell):
            fresh = {name: value for name, value in namespace.items() if before.get(name, before) is not value}
            defined |= {name: value for name, value in fresh.items() if not name.startswith("__")}
    return defined
