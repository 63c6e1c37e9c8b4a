"""`python -m utils grade`: submissions are judged by this repository's checks, whatever became of their own."""

import json

import nbformat
import pytest

from utils import __main__ as commands
from utils.grade import summed_up
from utils.notebooks.build_labs import lab_from
from utils.notebooks.errors import NotebookError
from utils.notebooks.files import ROOT, read_notebook, write_notebook
from utils.notebooks.grade import Graded, Judged, grade, in_a_line

SOLVED = ROOT / "solutions" / "03_ring_cost.ipynb"
RIGHT = {cell.id: cell.source for cell in read_notebook(SOLVED).cells}
# What a check uses, bound anew: none of it may turn a verdict or hide it.
REBOUND = """
import io, json, sys, utils.checks
utils.check = utils.checks.check = utils.checks._judge = lambda *given: utils.checks.Verdict("passed", "", "")
dumps = json.dumps
json.dumps = lambda given, **how: dumps(["passed", ""] if isinstance(given, list) else given, **how)
sys.stdout = io.StringIO()
"""
WRONG = "def all_gather_ring(chunk):\n    return [chunk]\n"


def submission(folder, *added, name="03_ring_cost.ipynb", without=(), **sources):
    """Lab 03 as it is handed out, with other sources for some cells, `added` behind all others, and some deleted."""
    lab = lab_from(read_notebook(SOLVED), SOLVED)
    lab.cells = [cell for cell in lab.cells if cell.id not in without]
    for cell in lab.cells:
        cell.source = sources.get(cell.id.removeprefix("03-").replace("-", "_"), cell.source)
    lab.cells += [nbformat.v4.new_code_cell(source) for source in added]
    write_notebook(lab, folder / name)
    return folder / name


def states(graded):
    return {each.exercise_id.removeprefix("03."): each.state for each in graded.exercises}


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """A right answer that leans on an added cell, one in an added cell, a wrong one, a cell that is no Python."""
    elsewhere = RIGHT["03-bandwidths-answer"].replace("def bandwidths", "def by_hand")
    path = submission(
        tmp_path_factory.mktemp("worked"),
        elsewhere,
        RIGHT["03-ring-or-tree-answer"],
        "check = print = lambda *given: 'passed'",
        without=("03-imports", "03-ring-or-tree-check", "03-bandwidths-check"),
        bandwidths_answer="def bandwidths(*given):\n    return by_hand(*given)\n",
        all_gather_ring_answer=WRONG + REBOUND,
        all_gather_ring_check="print('passed · 03.all_gather_ring: verified')",
        fit_alpha_beta_answer="def fit_alpha_beta(\n",
    )
    return grade(path)


def test_right_answers_pass_wherever_they_stand(worked):
    assert (worked.lab, worked.passed) == ("03", 2)
    assert {name for name, state in states(worked).items() if state == "passed"} == {"bandwidths", "ring_or_tree"}


def test_a_wrong_one_is_named_whatever_its_own_check_cell_says(worked):
    (found,) = (each for each in worked.exercises if each.exercise_id == "03.all_gather_ring")
    assert found.state == "mistake" and found.message and "verified" not in found.message


def test_a_cell_that_raises_is_a_mistake_and_a_stub_is_not_begun(worked):
    (found,) = (each for each in worked.exercises if each.exercise_id == "03.fit_alpha_beta")
    assert found.state == "mistake" and "raised SyntaxError" in found.message
    assert states(worked)["reduce_scatter_ring"] == "not begun"


@pytest.mark.rest
def test_lost_tags_and_a_deleted_answer_are_no_hindrance(tmp_path):
    path = submission(tmp_path, without=("03-average-ring-answer",), bandwidths_answer=RIGHT["03-bandwidths-answer"])
    notebook = read_notebook(path)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    write_notebook(notebook, path)
    graded = grade(path)
    assert states(graded)["bandwidths"] == "passed" and graded.passed == 1
    (found,) = (each for each in graded.exercises if each.exercise_id == "03.average_ring")
    assert found.state == "not begun" and found.message == "its answer cell is missing."


@pytest.mark.rest
@pytest.mark.parametrize("does", ["pass", "print('x' * 1000)"])
def test_a_cell_that_hangs_costs_its_seconds_and_nothing_else(tmp_path, does):
    path = submission(
        tmp_path,
        all_gather_ring_answer=f"while True:\n    {does}\n",
        bandwidths_answer=RIGHT["03-bandwidths-answer"],
    )
    graded = grade(path, timeout=10)
    assert states(graded)["bandwidths"] == "passed" and states(graded)["all_gather_ring"] == "mistake"
    assert "KeyboardInterrupt" in graded.exercises[1].message


@pytest.mark.rest
def test_a_cell_that_survives_its_interrupt_does_not_hold_up_the_others(tmp_path):
    path = submission(tmp_path, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass\n")
    lab = read_notebook(path)
    lab.cells.insert(0, lab.cells.pop())
    write_notebook(lab, path)
    graded = grade(path, timeout=20)
    assert {each.message for each in graded.exercises} == {"a cell before it could not be interrupted."}


@pytest.mark.rest
def test_who_ends_the_kernel_is_not_judged_from_there_on(tmp_path):
    path = submission(
        tmp_path,
        "import os; os._exit(0)",
        without=("03-ring-or-tree-check",),
        bandwidths_answer=RIGHT["03-bandwidths-answer"],
    )
    graded = grade(path)
    assert states(graded)["bandwidths"] == "passed"
    last = graded.exercises[-1]
    assert (last.state, last.message) == ("not judged", "a cell before it ended the kernel.")


def test_what_is_no_lab_is_refused_in_one_sentence(tmp_path, capsys):
    lesson = ROOT / "notebooks" / "calculators.ipynb"
    with pytest.raises(NotebookError, match="holds no answer cell of a lab"):
        grade(lesson)
    stranger = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", metadata={"tags": ["answer:99.x"]})])
    write_notebook(stranger, tmp_path / "hidden.ipynb")
    with pytest.raises(NotebookError, match="holds no answer cell of a lab"):
        grade(tmp_path / "hidden.ipynb")
    (tmp_path / "hidden.ipynb").unlink()
    assert commands.main(["grade", str(lesson)]) == 2
    assert commands.main(["grade", str(tmp_path)]) == 2
    assert commands.main(["grade", str(tmp_path / "nobody.ipynb")]) == 2
    assert commands.main(["grade", str(tmp_path), "--timeout", "0"]) == 2
    said = capsys.readouterr().err
    assert "There is no notebook" in said and "there is no lab to judge" in said and "--timeout is 0" in said


def test_a_message_is_one_line_that_steers_no_terminal():
    assert in_a_line("a\nx.ipynb: 8 of 8 passed\x1b[2J\ud800") == "a x.ipynb: 8 of 8 passed\\x1b[2J\\xd800"
    assert len(in_a_line("x" * 10**6)) < 700


def test_an_unforeseen_error_costs_one_submission_alone(tmp_path, monkeypatch, capsys):
    each = Judged("03.bandwidths", "passed", "")

    def graded(path, timeout):
        return {"b": Graded(path, "03", (each,), other_version=True)}[path.stem]

    monkeypatch.setattr("utils.notebooks.grade.grade", graded)
    for name in "ab":
        (tmp_path / f"{name}.ipynb").touch()
    assert commands.main(["grade", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "a.ipynb could not be judged, KeyError" in said.err and said.err.count("\n") == 1
    assert "b.ipynb: lab 03, 1 of 1 passed, of another version of the lab" in said.out


def test_the_summary_counts_states_and_names_the_most_frequent_mistake(tmp_path):
    def of(state, message):
        return Graded(tmp_path, "03", (Judged("03.bandwidths", state, message),))

    every = [of("mistake", "too large"), of("passed", ""), of("mistake", "too small"), of("mistake", "too large")]
    assert summed_up(every).splitlines() == [
        "lab 03, 4 submissions",
        "  03.bandwidths: 1 passed, 3 mistake",
        "    2 x too large",
    ]


def test_the_command_as_json(tmp_path, monkeypatch, capsys):
    each = Judged("03.bandwidths", "mistake", "too large")
    monkeypatch.setattr("utils.notebooks.grade.grade", lambda path, timeout: Graded(path, "03", (each,)))
    (tmp_path / "03.ipynb").touch()
    assert commands.main(["grade", str(tmp_path), "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    exercise = {"id": "03.bandwidths", "state": "mistake", "message": "too large"}
    assert told == {"path": str(tmp_path / "03.ipynb"), "lab": "03", "passed": 0, "exercises": [exercise]} | {
        "other_version": False
    }
