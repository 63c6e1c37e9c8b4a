"""`python -m utils run`: a notebook's cells without Jupyter, alone and on the ranks of a job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.notebooks import SETUP, write_notebook
from utils.notebooks.errors import NotebookError
from utils.notebooks.without_jupyter import Nothing, code_cells, show

ROOT = Path(__file__).parents[2]
JOB = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
# A Python that has torch, cloudpickle and psutil, and nothing of Jupyter.
BARE = """
import sys
for name in ("IPython", "ipykernel", "ipywidgets", "jupyterlab", "matplotlib", "nbformat", "nbclient"):
    sys.modules[name] = None
"""


def run(notebook, *launcher, **environment):
    command = [sys.executable, *launcher, "-m", "utils", "run", str(notebook)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "UTILS_"))}
    done = subprocess.run(command, cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=500)
    return done.returncode, done.stdout, done.stderr


def test_cells_run_in_order_in_the_notebooks_folder_and_values_are_shown_as_text(tmp_path):
    cells = ("import os\nx = 6", "x * 7", "x;", "display('a', x)", "print(os.getcwd())", "def f():\n    return x\nf")
    code, printed, errors = run(write_notebook(tmp_path / "a.ipynb", *cells))
    assert (code, errors) == (0, "")
    lines = printed.splitlines()
    assert lines[:4] == ["42", "'a'", "6", str(tmp_path)] and lines[4].startswith("<function f")
    assert lines[-1] == "a.ipynb: 6 cells run; 0 of 0 checks passed"


def test_a_cell_that_raises_ends_it_with_the_lines_of_the_cell_alone(tmp_path):
    cells = ("def f(x):\n    return 1 / x", "f(0)", "print('never')")
    code, printed, errors = run(write_notebook(tmp_path / "a.ipynb", *cells))
    assert (code, printed) == (1, "")
    assert errors.startswith(
        'a.ipynb: Cell In[2] raised\nTraceback (most recent call last):\n  File "Cell In[2]", line 1'
    )
    assert 'File "Cell In[1]", line 2, in f\n    return 1 / x' in errors and "run.py" not in errors


def test_an_exit_is_no_success(tmp_path):
    code, _, errors = run(write_notebook(tmp_path / "a.ipynb", "raise SystemExit(0)"))
    assert code == 1 and "SystemExit" in errors


@pytest.mark.parametrize("answer", ["def all_reduce(tensor):\n    raise NotImplementedError", "all_reduce = None"])
def test_a_solution_whose_check_does_not_pass_has_another_status(tmp_path, answer):
    (tmp_path / "solutions").mkdir()
    cells = ("from utils import check", answer, "check('00.all_reduce', all_reduce)")
    code, printed, errors = run(write_notebook(tmp_path / "solutions" / "00_a.ipynb", *cells))
    assert code == 1 and "not begun · 00.all_reduce" in printed
    assert errors == "00_a.ipynb: not passed: 00.all_reduce\n"


def test_a_solution_that_leaves_a_check_out_has_not_passed_it(tmp_path):
    (tmp_path / "solutions").mkdir()
    code, _, errors = run(write_notebook(tmp_path / "solutions" / "00_a.ipynb", "1"))
    assert code == 1 and "not passed: 00.all_reduce" in errors


@pytest.mark.parametrize("content", ["no json", "[]", '{"cells": [{"cell_type": "code"}]}'])
def test_what_is_no_notebook_is_refused(tmp_path, content):
    (tmp_path / "a.ipynb").write_text(content)
    with pytest.raises(NotebookError, match="cannot be read as a notebook"):
        code_cells(tmp_path / "a.ipynb")


def test_magics_are_refused_with_their_line(tmp_path):
    with pytest.raises(NotebookError, match=r"Cell In\[2\] has the line `%time f\(\)`, which only IPython can run"):
        code_cells(write_notebook(tmp_path / "a.ipynb", "1", "x = 1\n%time f()"))


def test_what_is_left_out_takes_everything_and_shows_nothing(capsys):
    show(Nothing(1, a=2).line.set(3), "text")
    assert capsys.readouterr().out == "'text'\n" and list(Nothing()) == []


@pytest.mark.rest
def test_a_job_without_jupyter_goes_on_with_one_run_on_every_rank(tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(BARE)
    cells = (
        SETUP
        + "from utils.views.collectives import collective_picture\nfrom utils.notebooks.answers import load_answers",
        "@dataclass\nclass Mine:\n    x: float\n"
        "def total(rank):\n    x = torch.full((2**18,), float(rank + 1))\n    dist.all_reduce(x)\n"
        "    return Mine(x[0].item())",
        "run = launch(total, 2)\nassert all(isinstance(each, Mine) for each in run.values)\nrun",
        "print([each.sent // 2**20 for each in run.wire_bytes], [ops[0].line.text for ops in run.timeline])",
        "collective_picture(run)",
        "other = launch(total, 1)\nmany = launch(total, 3)\nother.values, many.values",
        "load_answers('01', source='solutions').lab",
    )
    code, printed, errors = run(write_notebook(tmp_path / "a.ipynb", *cells), *JOB, PYTHONPATH=str(tmp_path / "bare"))
    assert code == 0, errors
    assert printed.splitlines() == [
        "Run of 2 ranks (gloo): values [Mine(x=3.0), Mine(x=3.0)]",
        "[1, 1] ['dist.all_reduce(x)', 'dist.all_reduce(x)']",
        "launch: 3 ranks are more than the 2 of this job; they run as processes of rank 0's host.",
        "((Mine(x=1.0),), (Mine(x=6.0), Mine(x=6.0), Mine(x=6.0)))",
        "'01'",
        "a.ipynb: 7 cells run on 2 ranks, 1 host; 0 of 0 checks passed",
    ]
