"""Stored notebooks: the same bytes at every run, and no file touched when a cell fails."""

import nbformat
import pytest

from tests.notebooks.planted import code, notebook_of, prose
from utils.notebooks.errors import NotebookError
from utils.notebooks.execute import refresh, run_notebook, tidy
from utils.notebooks.files import read_notebook, write_notebook
from utils.notebooks.hygiene import faults

WIDGET = "import ipywidgets\nipywidgets.IntSlider()"
CHUNKS = "import sys\nfor part in 'one two three'.split():\n    print(part, flush=True)\nprint('err', file=sys.stderr)"


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """A notebook's file after one refresh and after two."""
    path = tmp_path_factory.mktemp("refresh") / "notebooks" / "x.ipynb"
    here = code("from pathlib import Path\nPath.cwd().name")
    write_notebook(notebook_of(prose("# X"), code(CHUNKS), code(""), code(WIDGET), here), path)
    texts = []
    for _ in range(2):
        refresh([path], report=lambda line: None)
        texts.append(path.read_text())
    return path, texts


def test_second_refresh_gives_the_same_bytes(twice):
    _, (first, second) = twice
    assert first == second


def test_stored_notebook_is_sound_and_ran_in_its_folder(twice):
    notebook = read_notebook(twice[0])
    assert faults(notebook, twice[0]) == []
    assert notebook.cells[4].outputs[0].data["text/plain"] == "'notebooks'"


def test_chunks_are_joined_and_counts_run_from_one(twice):
    notebook = read_notebook(twice[0])
    assert [(output.name, output.text) for output in notebook.cells[1].outputs] == [
        ("stdout", "one\ntwo\nthree\n"),
        ("stderr", "err\n"),
    ]
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == [1, None, 2, 3]


def test_no_widget_state_no_times_and_no_version_of_python_are_stored(twice):
    path, (text, _) = twice
    notebook = read_notebook(path)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert "widget-view" not in text
    assert text.startswith('{\n "cells": [\n  {\n') and text.endswith("}\n")


@pytest.mark.parametrize(
    ("culprit", "words"),
    [
        ("1 / 0", r"cell culprit \(`1 / 0`\) failed with ZeroDivisionError"),
        ("!false", "cell culprit .* failed with CalledProcessError"),
        ("import os; os._exit(1)", "cell culprit .* ended the kernel"),
    ],
)
def test_failing_cell_is_named_and_the_file_stays(tmp_path, culprit, words):
    path = tmp_path / "x.ipynb"
    write_notebook(notebook_of(code("1"), code(culprit, id="culprit")), path)
    before = path.read_text()
    with pytest.raises(NotebookError, match=words):
        refresh([path])
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.ipynb"]


def test_hung_cell_is_named(tmp_path):
    notebook = notebook_of(code("import time; time.sleep(1000)", id="culprit"))
    with pytest.raises(NotebookError, match=r"cell culprit .* did not finish within 1 seconds"):
        run_notebook(notebook, tmp_path / "x.ipynb", timeout=1)


def test_tidy_drops_what_a_frontend_leaves():
    cell = code("1")
    cell.metadata.update({"tags": ["kept"], "ExecuteTime": 1, "collapsed": True, "scrolled": False, "execution": {}})
    notebook = notebook_of(cell)
    notebook.metadata["widgets"] = {}
    notebook.metadata["language_info"] = nbformat.from_dict({"name": "python", "version": "3.11.7"})
    tidied = tidy(notebook)
    assert tidied.cells[0].metadata == {"tags": ["kept"]}
    assert "widgets" not in tidied.metadata
    assert tidied.metadata.language_info == {"name": "python"}
