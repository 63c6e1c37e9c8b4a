"""Finds and reads notebooks that were handed in, by whatever tool they were saved.

Only what is judged is read: each cell's kind, source, id and tags. Outputs and other metadata are passed over, so
that what a tool wrote there cannot be in the way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from utils.notebooks.errors import NotebookError

LARGEST = 100_000_000  # bytes; a lab with all its outputs has less than one of these hundred
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAKE = {
    "code": nbformat.v4.new_code_cell,
    "markdown": nbformat.v4.new_markdown_cell,
    "raw": nbformat.v4.new_raw_cell,
}


def submissions(paths: Iterable[Path]) -> list[Path]:
    """The notebooks at `paths` and in the folders among them, hidden ones left out; each file once, in order.

    A folder that cannot be opened stands among them, so that who reads it says so.
    """
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        for each in _inside(path) if path.is_dir() else [path]:
            found.setdefault(os.path.realpath(each), each)
    return list(found.values())


def _inside(folder: Path) -> Iterator[Path]:
    closed: list[Path] = []
    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # Hidden files as well: an archive made on macOS holds a `._name.ipynb` beside each notebook.
        found += [Path(place, name) for name in files if name.endswith(".ipynb") and not name.startswith(".")]
    yield from sorted(found + closed)


def read_submission(path: Path) -> NotebookNode:
    """The notebook at `path`, every cell with an id of its own. Raises NotebookError for what is none."""
    content = _content(path)
    if not isinstance(content, dict) or content.get("nbformat") != 4 or not isinstance(content.get("cells"), list):
        raise NotebookError(f"{path} is no notebook of format 4: ask for the .ipynb file that Jupyter saves.")
    notebook, seen = nbformat.v4.new_notebook(), set()
    for number, cell in enumerate(content["cells"]):
        made = _cell(cell, seen)
        if made is None:
            raise NotebookError(f"{path} is no notebook of format 4: its cell {number} has no kind or no source.")
        seen.add(made.id)
        notebook.cells.append(made)
    metadata = content.get("metadata")
    notebook.metadata = nbformat.from_dict(metadata if isinstance(metadata, dict) else {})
    return notebook


def _content(path: Path) -> Any:
    try:
        if path.is_dir():
            raise NotebookError(f"{path} is a folder that cannot be opened: its permissions forbid it.")
        if not os.path.lexists(path):
            raise NotebookError(f"There is no notebook {path}; give the path of an .ipynb file.")
        if not path.exists():
            raise NotebookError(f"{path} is a link that leads nowhere: give the file itself.")
        if not path.is_file():  # a pipe or a device might be read for ever
            raise NotebookError(f"{path} is neither a file nor a folder: give an .ipynb file.")
        if not 0 < path.stat().st_size <= LARGEST:
            size = f"{path.stat().st_size / 1e6:.0f} MB, and 100 are read" if path.stat().st_size else "empty, 0 bytes"
            raise NotebookError(f"{path} is {size}: ask for it again, with outputs cleared.")
        return json.loads(path.read_text(encoding="utf-8-sig"))  # some tools begin a file with a mark of its encoding
    except NotebookError:
        raise
    except UnicodeDecodeError:
        raise NotebookError(f"{path} is no text in UTF-8: ask for the .ipynb file that Jupyter saves.") from None
    except OSError as error:
        raise NotebookError(f"{path} cannot be read: {error.strerror or error}.") from None
    except json.JSONDecodeError as error:
        raise NotebookError(f"{path} cannot be read as a notebook: {error}.") from None
    except (RecursionError, ValueError):  # brackets thousands deep; a number of thousands of digits
        raise NotebookError(
            f"{path} cannot be read as a notebook: ask for the .ipynb file that Jupyter saves."
        ) from None


def _cell(cell: Any, seen: set[str]) -> NotebookNode | None:
    if not isinstance(cell, dict) or cell.get("cell_type") not in list(_MAKE):
        return None
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    metadata = cell["metadata"] if isinstance(cell.get("metadata"), dict) else {}
    tags = metadata.get("tags")
    tags = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    # Half a character, which JSON can hold, cannot be sent to a kernel.
    made = _MAKE[cell["cell_type"]](source.encode("utf-8", "replace").decode(), metadata={"tags": tags})
    # Some tools keep ids in the metadata, some keep none, and some give a copy the id of its model.
    for own in (cell.get("id"), metadata.get("id")):
        if isinstance(own, str) and _ID.fullmatch(own) and own not in seen:
            made.id = own
            break
    return made
