"""Reads from a notebook which exercises it has and what their checks say."""

from __future__ import annotations

import re

from nbformat import NotebookNode

from utils.notebooks.build_labs import ANSWER
from utils.notebooks.files import tags_of
from utils.notebooks.hygiene import texts_of

_VERDICT = re.compile(r"^(not begun|mistake|passed) · ([\w.]+):", re.MULTILINE)


def exercises(notebook: NotebookNode) -> list[str]:
    """The ids of the notebook's exercises, by the tags of their answer cells."""
    tags = [tag for cell in notebook.cells for tag in tags_of(cell)]
    return [tag.removeprefix(ANSWER) for tag in tags if tag.startswith(ANSWER)]


def verdicts(notebook: NotebookNode) -> dict[str, str]:
    """By exercise what its check printed last: not begun, mistake or passed."""
    texts = [text for cell in notebook.cells if cell.cell_type == "code" for text in texts_of(cell)]
    return {exercise: state for text in texts for state, exercise in _VERDICT.findall(text)}
