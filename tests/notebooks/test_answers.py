"""Earlier answers can be loaded, sent to other processes, and traced to their lines."""

import pickle
import subprocess
import sys
import traceback

import cloudpickle
import pytest

from tests.notebooks.planted import code, notebook_of
from utils.notebooks.answers import load_answers
from utils.notebooks.build_labs import build_labs
from utils.notebooks.errors import NotebookError
from utils.notebooks.files import read_notebook, write_notebook
from utils.notebooks.markers import STUB

HALF = '''def half(x):
    """Half of x."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION
'''
QUARTER = '''def quarter(x):
    """A quarter of x."""
    ### BEGIN SOLUTION
    return half(half(x)) * math.copysign(1, 1)
    ### END SOLUTION
'''


@pytest.fixture
def root(tmp_path):
    """A repository with a solution of two answers, and its lab as built."""
    notebook = notebook_of(
        code("raise RuntimeError('cells without a tag are not run')"),
        code("import math", "answer-imports"),
        code(HALF, "answer:90.half", id="half-cell"),
        code(QUARTER, "answer:90.quarter", id="quarter-cell"),
    )
    write_notebook(notebook, tmp_path / "solutions" / "90_fixture.ipynb")
    build_labs(tmp_path)
    return tmp_path


def answer(root, cell_id, source):
    """Write `source` into a cell of the lab, as a learner would."""
    path = root / "labs" / "90_fixture.ipynb"
    lab = read_notebook(path)
    next(cell for cell in lab.cells if cell.id == cell_id).source = source
    write_notebook(lab, path)


def test_solved_answers_are_returned_without_a_word(root, capsys):
    answers = load_answers("90", source="solutions", root=root)
    assert list(answers.names) == ["half", "quarter"]
    assert answers.quarter(8) == 2
    assert answers.borrowed == ()
    assert capsys.readouterr().out == ""


def test_lab_not_begun_gives_the_solution_and_says_so(root, capsys):
    answers = load_answers("90", source="labs", root=root)
    assert answers.quarter(8) == 2
    assert answers.borrowed == ("90.half", "90.quarter")
    assert "Not begun" in capsys.readouterr().out


def test_learners_answer_is_used_also_by_the_borrowed_ones(root, capsys):
    answer(root, "half-cell", "def half(x):\n    return x / 2 + 100")
    answers = load_answers("90", source="labs", root=root)
    assert answers.half(2) == 101
    assert answers.quarter(0) == 150
    assert answers.borrowed == ("90.quarter",)
    assert capsys.readouterr().out.strip().endswith("so the solution's answer is used: 90.quarter")


def test_answer_half_written_counts_as_not_begun(root):
    answer(root, "half-cell", f"def half(x):\n    y = x\n    {STUB}")
    assert load_answers("90", source="labs", root=root).half(2) == 1


def test_missing_lab_gives_the_solution(root):
    (root / "labs" / "90_fixture.ipynb").unlink()
    assert load_answers("90", source="labs", root=root).half(2) == 1


@pytest.mark.parametrize(("folder", "expected"), [("labs", 101), ("solutions", 1), (".", 1)])
def test_the_folder_of_the_notebook_decides(root, monkeypatch, folder, expected):
    answer(root, "half-cell", "def half(x):\n    return x / 2 + 100")
    monkeypatch.chdir(root / folder)
    assert load_answers("90", root=root).half(2) == expected


def test_traceback_shows_notebook_cell_and_line(root):
    half = load_answers("90", source="solutions", root=root).half
    with pytest.raises(TypeError) as raised:
        half("text")
    text = "".join(traceback.format_exception(raised.value))
    assert 'File "solutions/90_fixture.ipynb, cell half-cell", line 4, in half' in text
    assert "return x / 2" in text


def test_answers_travel_to_a_process_that_cannot_import_them(root):
    parcel = cloudpickle.dumps(load_answers("90", source="solutions", root=root).quarter)
    reply = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer)(8))"],
        input=parcel,
        capture_output=True,
        check=True,
    )
    assert reply.stdout.split() == [b"2.0"]


def test_the_collection_of_answers_can_be_pickled_and_copied(root):
    answers = load_answers("90", source="solutions", root=root)
    assert pickle.loads(cloudpickle.dumps(answers)).half(2) == 1


def test_unknown_names_labs_and_sources_give_one_sentence(root):
    answers = load_answers("90", source="solutions", root=root)
    with pytest.raises(AttributeError, match=r"define no 'third'; they define half, quarter"):
        _ = answers.third
    with pytest.raises(NotebookError, match=r"There is no lab '91'; the labs are 90"):
        load_answers("91", source="solutions", root=root)
    with pytest.raises(ValueError, match="source is 'lab'; it must be 'labs', 'solutions' or None"):
        load_answers("90", source="lab", root=root)


@pytest.mark.parametrize("broken", ["def half(x:\n    return 1", "1 / 0"])
def test_lab_that_does_not_run_is_named(root, broken):
    answer(root, "half-cell", broken)
    with pytest.raises(NotebookError, match=r"labs/90_fixture.ipynb, cell half-cell .* does not run"):
        load_answers("90", source="labs", root=root)


def test_notebook_without_answers_is_named(tmp_path):
    write_notebook(notebook_of(code("1")), tmp_path / "solutions" / "90_x.ipynb")
    with pytest.raises(NotebookError, match="has no cell tagged"):
        load_answers("90", source="solutions", root=tmp_path)
