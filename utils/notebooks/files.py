"""Reads and writes notebook files: the one place that knows how a stored notebook looks.

Stored notebooks are compared and reviewed as text, so the same notebook must always give the same bytes: keys sorted,
one space of indentation, the same kernel and language metadata whichever Python ran it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from utils.notebooks.errors import NotebookError

ROOT = Path(__file__).resolve().parents[2]

# Constant on purpose: what a kernel writes here changes with every patch release of Python.
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_LANGUAGE = {"name": "python"}


def shown(path: Path) -> str:
    """The path as a reader of a message wants it: from the repository's root where it lies inside."""
    path = Path(path).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()


def place(path: Path, cell: NotebookNode) -> str:
    """Name a cell for a message: the notebook, the cell's id and its first line."""
    first_line = next((line.strip() for line in cell.source.splitlines() if line.strip()), "")
    return f"{shown(path)}, cell {cell.id} (`{first_line[:60]}`)"


def tags_of(cell: NotebookNode) -> list[str]:
    """The cell's tags."""
    return list(cell.metadata.get("tags", []))


def read_notebook(path: Path) -> NotebookNode:
    """The notebook at `path`. Raises NotebookError if it is missing, no notebook, or has cells without their own id."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotebookError(f"There is no notebook {shown(path)}; give the path of an .ipynb file.") from None
    except (OSError, ValueError) as error:
        raise NotebookError(f"{shown(path)} cannot be read as a notebook: {error}.") from None
    if not isinstance(content, dict) or content.get("nbformat") != 4:
        raise NotebookError(f"{shown(path)} is not a notebook of format 4.")
    cells = content.get("cells", [])
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise NotebookError(f"{shown(path)} is not a notebook of format 4: `cells` is no list of cells.")
    ids = [cell.get("id") for cell in cells]
    if not all(isinstance(each, str | None) for each in ids):
        raise NotebookError(f"{shown(path)} is not a notebook of format 4: a cell's id is no text.")
    if None in ids or len(set(ids)) < len(ids):
        # nbformat would invent ids, other ones at every reading; labs rely on ids that stay.
        raise NotebookError(f"{shown(path)}: every cell needs an id of its own; open and save it in JupyterLab once.")
    try:
        nbformat.validate(content)
    except nbformat.ValidationError as error:
        reason = str(error).split("\n")[0]
        raise NotebookError(f"{shown(path)} is not a notebook of format 4: {reason}.") from None
    return nbformat.reads(json.dumps(content), as_version=4)


def notebook_metadata(**extra: Any) -> NotebookNode:
    """The metadata of every stored notebook: kernel and language, the same everywhere, and `extra`."""
    return nbformat.from_dict({"kernelspec": _KERNEL, "language_info": _LANGUAGE, **extra})


def text_of(notebook: NotebookNode) -> str:
    """The notebook as the text of its file; the same notebook gives the same text."""
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Store the notebook; an interrupted write leaves the old file whole."""
    write_text(text_of(notebook), path)


def write_text(text: str, path: Path) -> None:
    """Store `text` at `path` by way of a file beside it, so that no reader ever meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
