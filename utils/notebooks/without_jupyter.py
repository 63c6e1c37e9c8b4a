"""What a notebook's cells need of Jupyter, where there is none: their text, a way to show a value, and stand-ins."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from utils.notebooks.errors import NotebookError

_DRAWN_WITH = ("matplotlib", "ipywidgets")
_VIEWS = "utils.views."


def code_cells(path: Path) -> list[str]:
    """The source of each code cell, in order. Raises NotebookError for what is no notebook, or needs IPython."""
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except FileNotFoundError:
        raise NotebookError(f"There is no notebook {path}; give the path of an .ipynb file.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotebookError(f"{path} cannot be read as a notebook: {type(error).__name__}: {error}.") from None
    for number, source in enumerate(sources, start=1):
        magic = next((line for line in source.splitlines() if line.startswith(("%", "!"))), None)
        if magic is not None:
            raise NotebookError(f"{path}: Cell In[{number}] has the line `{magic}`, which only IPython can run.")
    return sources


def show(*values: Any) -> None:
    """In place of IPython's `display`: a value's text. Widgets and left-out pictures show nothing."""
    widgets = sys.modules.get("ipywidgets")
    for value in values:
        if not isinstance(value, Nothing) and not (widgets and isinstance(value, widgets.Widget)):
            print(repr(value))


class Nothing:
    """Stands for a picture or a widget that cannot be made here: takes everything, is nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args: Any, **options: Any) -> Nothing:
        return Nothing()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __repr__(self) -> str:
        return "(left out: it needs matplotlib and ipywidgets)"


class _NoViews:
    """Finds each module of utils.views, and gives one whose names all are `Nothing`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self) if name.startswith(_VIEWS) else None

    def create_module(self, spec: Any) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        def name_of(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return Nothing

        module.__getattr__ = name_of


def make_do_without() -> None:
    """Where matplotlib, ipywidgets or nbformat is not installed, let cells run without pictures, widgets and it."""
    if not all(_is_there(name) for name in _DRAWN_WITH):
        sys.meta_path.insert(0, _NoViews())
    if not _is_there("nbformat"):
        sys.modules["nbformat"] = _small_nbformat()


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: somebody has put None in its place
        return False


class _Node(dict):
    """A dictionary whose entries are attributes too, as in nbformat."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _small_nbformat() -> types.ModuleType:
    """As much of nbformat as loading the answers of a lab takes; it validates nothing."""
    module = types.ModuleType("nbformat")
    module.NotebookNode = _Node
    module.ValidationError = ValueError
    module.validate = lambda content: None
    module.reads = lambda text, as_version: json.loads(text, object_hook=_node)
    return module


def _node(entries: dict[str, Any]) -> _Node:
    """A cell's source is one text, whichever way it is stored."""
    source = entries.get("source")
    return _Node(entries | {"source": "".join(source)} if isinstance(source, list) else entries)
