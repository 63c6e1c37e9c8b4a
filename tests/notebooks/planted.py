"""Makes small notebooks for the tests of this folder, and runs pytest on them in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from nbformat import NotebookNode

from utils.notebooks.files import ROOT, notebook_metadata, write_notebook

NBVAL = "tests.notebooks.nbval_repairs"
SKIPS = "tests.skip_account"


@dataclass(frozen=True)
class Planted:
    """A code cell: its source, the text that is stored as its output, its tags."""

    source: str
    printed: str = ""
    tags: tuple[str, ...] = ()


def code(source: str, *tags: str, id: str | None = None) -> NotebookNode:
    """A code cell without outputs."""
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {})
    if id:
        cell.id = id
    return cell


def prose(source: str, id: str | None = None) -> NotebookNode:
    """A markdown cell."""
    cell = nbformat.v4.new_markdown_cell(source)
    if id:
        cell.id = id
    return cell


def notebook_of(*cells: NotebookNode) -> NotebookNode:
    """A notebook of these cells."""
    return nbformat.v4.new_notebook(cells=list(cells), metadata=notebook_metadata(), nbformat_minor=5)


def stored(*cells: Planted) -> NotebookNode:
    """A notebook as it is after a run: counts 1..n, each cell's printed text as its output. Ids are c1, c2, …"""
    made = []
    for count, planted in enumerate(cells, start=1):
        cell = code(planted.source, *planted.tags, id=f"c{count}")
        cell.execution_count = count
        if planted.printed:
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=planted.printed)]
        made.append(cell)
    return notebook_of(*made)


@dataclass(frozen=True)
class Outcome:
    """What a pytest session said: its exit status, its text, failed tests with their message, each file's seconds."""

    status: int
    text: str
    failures: dict[str, str]
    seconds: dict[str, float]
    left: tuple[str, ...]  # processes that outlived the session


def run_pytest(folder: Path, plugin: str, *arguments: str, **environment: str) -> Outcome:
    """Run pytest with one of this project's plugins on `folder`, which gets a conftest.py; CI is unset unless given."""
    (folder / "conftest.py").write_text(f"pytest_plugins = [{plugin!r}]\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    mark, report = uuid.uuid4().hex, folder / "report.xml"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != "CI"}
    session = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", "--rootdir=.", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), "PLANTED": mark, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    failures, seconds = {}, {}
    for case in ET.parse(report).iter("testcase") if report.exists() else ():
        file = case.get("classname").replace(".", "/").removesuffix("/ipynb") + ".ipynb"
        seconds[file] = seconds.get(file, 0.0) + float(case.get("time"))
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                failures[f"{file}::{case.get('name')}"] = found.text or found.get("message")
    return Outcome(session.returncode, session.stdout, failures, seconds, _left(mark))


def _left(mark: str) -> tuple[str, ...]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PLANTED") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.name()}")
        except psutil.Error:
            continue
    return tuple(found)


def write(folder: Path, **notebooks: NotebookNode) -> None:
    """Store each notebook in `folder` under its name."""
    for name, notebook in notebooks.items():
        write_notebook(notebook, folder / f"{name}.ipynb")
