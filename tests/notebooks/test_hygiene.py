"""What makes a committed notebook unsound, and what does not."""

import socket

import nbformat
import pytest

from tests.notebooks.planted import Planted, code, notebook_of, stored
from utils.notebooks.files import ROOT
from utils.notebooks.hygiene import faults

IGNORED = "nbval-ignore-output"
RAW = Planted("print(clock())", "0.2317\n", (IGNORED,))
VERDICT = Planted("print(verdict)", "as predicted\n")


def found(*cells):
    return faults(stored(*cells), ROOT / "notebooks" / "99_x.ipynb")


def test_sound_notebook_has_no_faults():
    assert found(VERDICT, RAW, VERDICT, RAW, VERDICT) == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((RAW, VERDICT, RAW, VERDICT, RAW, VERDICT), "cell c5 (`print(clock())`) is ignored by nbval: at most 2"),
        ((VERDICT, RAW), "cell c2 (`print(clock())`) is ignored by nbval, and no checked cell"),
        ((RAW, RAW, VERDICT), "cell c1 (`print(clock())`) is ignored by nbval, and no checked cell"),
        ((RAW, Planted("pass"), VERDICT), "cell c1 (`print(clock())`) is ignored by nbval, and no checked cell"),
        ((Planted("1", "1", ("nbval-skip",)),), "cell c1 (`1`) is skipped"),
        ((Planted("# NBVAL_IGNORE_OUTPUT\n1", "1"),), "steers nbval by a comment"),
        ((Planted("## NBVAL_IGNORE_OUTPUT\n1", "1"),), "steers nbval by a comment"),
        ((Planted("1\n  ###NBVAL_SKIP", "1"),), "steers nbval by a comment"),
    ],
)
def test_cells_that_hide_from_nbval_are_found(cells, words):
    (fault,) = found(*cells)
    assert words in fault
    assert fault.startswith("notebooks/99_x.ipynb, cell ")


@pytest.mark.parametrize(
    ("printed", "what"),
    [
        (f"read {ROOT}/data\n", "an absolute path"),
        ("File '/usr/lib/python3/x.py'\n", "an absolute path"),
        ("C:\\Users\\x\n", "an absolute path"),
        ("cwd=/home/me/x\n", "an absolute path"),
        ("file:///home/me/x/y\n", "an absolute path"),
        ("file://localhost/home\n", "an absolute path"),
        ("<code>/home/me/x</code>\n", "an absolute path"),
        ("&lt;code&gt;/home/me/x\n", "an absolute path"),
        ("'/workdir'\n", "an absolute path"),
        ("/workdir\n", "an absolute path"),
        ("in /workdir\n", "an absolute path"),
        ("PATH:/usr/bin\n", "an absolute path"),
        ("<object at 0x7f3a2b1c4d50>\n", "a memory address"),
        ("started 12:03:59\n", "a time of day"),
        ("on 2030-02-28\n", "a date"),
        ("store at 127.0.0.1:29500\n", "a port"),
    ],
)
def test_output_that_holds_something_of_one_run_is_found(printed, what):
    (fault,) = found(Planted("show()", printed))
    assert f"cell c1 (`show()`) is checked, and its output holds {what}" in fault


@pytest.mark.parametrize("kind", ["text/html", "text/markdown", "text/latex", "image/svg+xml"])
def test_output_of_every_kind_of_text_is_read(kind):
    notebook = stored(VERDICT)
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data={kind: "<code>/home/me/x</code>"})]
    (fault,) = faults(notebook, ROOT / "x.ipynb")
    assert "its output holds an absolute path: '/home/me/x'" in fault


def test_host_name_is_found(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "anna-laptop")
    (fault,) = found(Planted("show()", "rank 0 on anna-laptop\n"))
    assert "holds this machine's name: 'anna-laptop'" in fault
    monkeypatch.setattr(socket, "gethostname", lambda: "node")
    assert found(Planted("show()", "each node has 2 ranks\n")) == []


@pytest.mark.parametrize(
    "printed",
    [
        "2(N-1)/N*S bytes/rank/step, and/or 3/4\n",
        "/proc/self/fd and /dev/shm\n",
        "https://pytorch.org/docs/stable\n",
        "<b>bold</b></td></tr><br/></svg:g>\n",
        "1/2 and 30/11/2030, MB /s, (a+b)/rank/step, and/or/not, ~/x/y, ./x/y, x = a/b\n",
        "http://example.org/a/b?c=d, <a href='https://example.org/a'>a</a>, src='data:image/png;base64,/9j/ab+/cd=='\n",
        "ratio 1:2, 0.25 s, 16/64 = 0.25, 0x1f\n",
        "notebooks/00_ranks.ipynb\n",
    ],
)
def test_ordinary_output_is_left_alone(printed):
    assert found(Planted("show()", printed)) == []


def test_ignored_cells_may_hold_what_they_like():
    assert found(Planted("show()", "at 12:03:59\n", (IGNORED,)), VERDICT) == []


def test_stripped_and_partly_run_notebooks_are_found():
    path = ROOT / "notebooks" / "99_x.ipynb"
    assert "is stripped" in faults(notebook_of(code("1"), code("2")), path)[0]
    notebook = stored(VERDICT, VERDICT)
    notebook.cells[1].execution_count = 7
    (fault,) = faults(notebook, path)
    assert "cell c2 (`print(verdict)`) has execution count 7, not 2" in fault
    assert "has no code cell" in faults(notebook_of(), path)[0]


def test_stored_error_needs_a_tag():
    notebook = stored(VERDICT)
    notebook.cells[0].outputs.append({"output_type": "error", "ename": "E", "evalue": "", "traceback": []})
    notebook.cells[0].outputs[-1] = type(notebook)(notebook.cells[0].outputs[-1])
    (fault,) = faults(notebook, ROOT / "x.ipynb")
    assert "stores an error that no tag announces" in fault
    notebook.cells[0].metadata["tags"] = ["raises-exception"]
    assert faults(notebook, ROOT / "x.ipynb") == []
