"""Writes labs/ from solutions/, the only source of the labs.

Everything is built and examined in memory first; one notebook that might give a solution away, and nothing is written.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from utils.notebooks.errors import NotebookError
from utils.notebooks.files import (
    ROOT,
    notebook_metadata,
    place,
    read_notebook,
    shown,
    tags_of,
    text_of,
    write_text,
)
from utils.notebooks.leaks import leaked
from utils.notebooks.markers import BEGIN, MarkerError, looks_like_marker, solution_texts, without_solution

SOLUTION_ONLY = "solution-only"
ANSWER = "answer:"
IMPORTS = "answer-imports"
_KNOWN_TAG = re.compile(
    rf"{SOLUTION_ONLY}|{IMPORTS}|{ANSWER}\d\d\.[a-z]\w*|nbval-ignore-output|(nbval-)?raises-exception"
)
STAMP = "built_as"


def build_labs(root: Path = ROOT, force: bool = False) -> list[Path]:
    """Write every lab anew from its solution.

    Args:
        root: The folder that holds solutions/ and labs/.
        force: Overwrite labs in which somebody has worked.

    Returns:
        The labs whose files changed. Raises NotebookError, and writes nothing, if a solution could leak, or if a lab
        holds work that would be lost.
    """
    labs = expected_labs(root)
    changed = [path for path, text in labs.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        if not force and holds_work(path):
            raise NotebookError(
                f"{shown(path)} has been edited since it was built; keep a copy under another name, then run "
                "`python -m utils build-labs --force`."
            )
    for path in changed:
        write_text(labs[path], path)
    return changed


def expected_labs(root: Path = ROOT) -> dict[Path, str]:
    """The text of every lab, by its path, as `build_labs` would write it."""
    solutions = sorted((root / "solutions").glob("*.ipynb"))
    return {root / "labs" / path.name: text_of(lab_from(read_notebook(path), path)) for path in solutions}


def holds_work(path: Path) -> bool:
    """True if the lab at `path` has been edited since it was built, whichever solution it was built from."""
    if not path.exists():
        return False
    lab = read_notebook(path)
    return lab.metadata.get(STAMP) != _fingerprint(lab)


def lab_from(solution: NotebookNode, path: Path) -> NotebookNode:
    """The lab that belongs to a solved notebook. `path` names the notebook in messages."""
    for cell in solution.cells:
        _refuse_unreadable(cell, path)
    cells = [_lab_cell(cell, path) for cell in solution.cells if SOLUTION_ONLY not in tags_of(cell)]
    _refuse_leaks(solution, cells, path)
    lab = nbformat.v4.new_notebook(cells=cells, metadata=notebook_metadata())
    lab.nbformat_minor = 5
    lab.metadata[STAMP] = _fingerprint(lab)
    return lab


def _lab_cell(cell: NotebookNode, path: Path) -> NotebookNode:
    made = copy.deepcopy(cell)
    tags = tags_of(cell)
    made.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    if cell.cell_type != "code":
        for line in cell.source.splitlines():
            if looks_like_marker(line):
                raise NotebookError(f"{place(path, cell)}: `{line.strip()}` stands in a {cell.cell_type} cell.")
        return made
    made.outputs, made.execution_count = [], None
    try:
        made.source = without_solution(cell.source)
    except MarkerError as error:
        raise NotebookError(f"{place(path, cell)}: {error}.") from None
    if any(tag.startswith(ANSWER) for tag in tags) and made.source == cell.source:
        raise NotebookError(f"{place(path, cell)}: the cell is tagged as an answer and has no `{BEGIN}`.")
    return made


def _refuse_leaks(solution: NotebookNode, lab_cells: list[NotebookNode], path: Path) -> None:
    """Raise if a hint, a docstring or another cell of the lab repeats what a solution region says."""
    for cell in solution.cells:
        if cell.cell_type != "code" or SOLUTION_ONLY in tags_of(cell):
            continue
        for code in solution_texts(cell.source):
            for other in lab_cells:
                if repeated := leaked(code, other.source):
                    raise NotebookError(
                        f"{place(path, cell)}: its solution (`{repeated}`) can be read in the lab, in cell {other.id}."
                    )


def _refuse_unreadable(cell: NotebookNode, path: Path) -> None:
    """Raise for what the guard against leaks cannot read or would misread: a misspelt tag, an attached file."""
    for tag in tags_of(cell):
        if not _KNOWN_TAG.fullmatch(tag):
            raise NotebookError(
                f"{place(path, cell)}: the tag `{tag}` has no meaning here; those that have are `{SOLUTION_ONLY}`, "
                f"`{IMPORTS}`, `{ANSWER}NN.name`, and nbval's."
            )
    if cell.get("attachments"):
        raise NotebookError(f"{place(path, cell)}: the cell has attachments, in which a solution could hide.")


def _fingerprint(notebook: NotebookNode) -> str:
    """A fingerprint of what the cells say; running or saving a lab does not change it, editing a cell does."""
    cells = [(cell.id, cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]
