"""What a committed notebook must look like, so that comparing its outputs means something.

nbval compares what is stored: a notebook stripped of its outputs, or with every cell ignored, would pass unseen.
"""

from __future__ import annotations

import html
import re
import socket
from pathlib import Path

from nbformat import NotebookNode

from utils.notebooks.files import place, shown, tags_of

IGNORED = "nbval-ignore-output"
MOST_IGNORED = 2

_NBVAL_COMMENT = re.compile(r"\s*#+\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)")

# What is left of tags in the text of HTML and SVG would look like paths: `</b>`, `<br/>`.
_TAG = re.compile(r"</[A-Za-z][\w:-]*\s*>|<[A-Za-z!][\w:-]*|/?>")
_PATH = "an absolute path"

# Text that changes with the machine or the hour. /dev, /proc and /sys are the same on every Linux.
_OF_ONE_RUN = {
    _PATH: re.compile(
        r"\bfile:/+\w[^\s\"'<>]*"
        r"|(?<![\w./~+)\]}|%$*^\\-])/(?!(?:dev|proc|sys)\b)[A-Za-z_][\w.+-]*(?:/[\w.+-]+)+"
        r"|(?:^|(?<=[\s\"'`=(\[,:;]))/(?!(?:dev|proc|sys)\b)[A-Za-z_][\w.+-]{2,}"  # one component: no unit such as /s
        r"|\b[A-Z]:\\\w",
        re.MULTILINE,
    ),
    "a memory address": re.compile(r"\b0x[0-9a-fA-F]{7,}\b"),
    "a time of day": re.compile(r"\b[012]?\d:[0-5]\d:[0-5]\d\b"),
    "a date": re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b"),
    "a port": re.compile(r"\b(?:\d{1,3}(?:\.\d{1,3}){3}|localhost):\d{4,5}\b"),
}


def faults(notebook: NotebookNode, path: Path) -> list[str]:
    """Every reason why the stored notebook cannot be trusted or shared, one sentence each; empty if it is sound."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    return [*_state(notebook, code, path), *_ignored(code, path), *_outputs(code, path)]


def _state(notebook: NotebookNode, code: list[NotebookNode], path: Path) -> list[str]:
    found = []
    if "widgets" in notebook.metadata:
        found.append(f"{shown(path)} carries widget state; store it with `python -m utils refresh {shown(path)}`.")
    if not code:
        found.append(f"{shown(path)} has no code cell: nothing in it is checked.")
    elif not any(cell.outputs for cell in code):
        found.append(f"{shown(path)} is stripped: no cell has an output, so nothing in it is checked.")
    for count, cell in enumerate(code, start=1):
        if cell.execution_count != count:
            found.append(
                f"{place(path, cell)} has execution count {cell.execution_count}, not {count}: the notebook was not "
                f"run once from top to bottom; run `python -m utils refresh {shown(path)}`."
            )
            break
    return found


def _ignored(code: list[NotebookNode], path: Path) -> list[str]:
    found = []
    ignored = [cell for cell in code if IGNORED in tags_of(cell)]
    for cell in ignored[MOST_IGNORED:]:
        found.append(f"{place(path, cell)} is ignored by nbval: at most {MOST_IGNORED} cells of a notebook may be.")
    for cell, following in zip(code, [*code[1:], None], strict=False):
        if cell in ignored and (following is None or following in ignored or not following.outputs):
            found.append(f"{place(path, cell)} is ignored by nbval, and no checked cell with an output follows it.")
        if "nbval-skip" in tags_of(cell) or "skip-execution" in tags_of(cell):
            found.append(f"{place(path, cell)} is skipped: every cell must run.")
        if any(map(_NBVAL_COMMENT.match, cell.source.splitlines())):
            found.append(f"{place(path, cell)} steers nbval by a comment; use a tag, which every rule here sees.")
    return found


def _outputs(code: list[NotebookNode], path: Path) -> list[str]:
    found = []
    for cell in code:
        may_raise = {"raises-exception", "nbval-raises-exception"} & set(tags_of(cell))
        if not may_raise and any(output.output_type == "error" for output in cell.outputs):
            found.append(f"{place(path, cell)} stores an error that no tag announces.")
        if IGNORED in tags_of(cell):
            continue
        text = "\n".join(texts_of(cell))
        patterns = {**_OF_ONE_RUN, "this machine's name": _host_name()}
        for what, pattern in patterns.items():
            match = pattern and pattern.search(_TAG.sub(" ", html.unescape(text)) if what == _PATH else text)
            if match:
                found.append(f"{place(path, cell)} is checked, and its output holds {what}: {match.group()!r}.")
    return found


def texts_of(cell: NotebookNode) -> list[str]:
    """The text of a cell's outputs that a reader may see: streams, every kind of text, SVG, error messages."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            data = output.get("data", {})
            texts.extend(data[kind] for kind in data if kind.startswith("text/") or kind == "image/svg+xml")
    return texts


def _host_name() -> re.Pattern[str] | None:
    """The host's name as a pattern; None for a name so plain that it may be an ordinary word."""
    name = socket.gethostname()
    return re.compile(rf"\b{re.escape(name)}\b") if re.search(r"[\d.-]", name) else None
