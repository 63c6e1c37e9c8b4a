"""Every lab: in step with its solution, nothing given away; untouched it runs to its end, solved it passes.

The same rules are tried on a small lab made here, so that they are tested where no chapter has a lab yet.
"""

import pytest

from tests.notebooks.planted import code, notebook_of, prose
from tests.notebooks.verdicts import exercises, verdicts
from utils.notebooks.build_labs import build_labs, expected_labs, holds_work
from utils.notebooks.execute import run_notebook, tidy
from utils.notebooks.files import ROOT, read_notebook, write_notebook
from utils.notebooks.markers import looks_like_marker

LABS = [ROOT / "labs" / path.name for path in sorted((ROOT / "solutions").glob("*.ipynb"))]
each_lab = pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)


def problems_of_files(lab, solution) -> list[str]:
    """What a lab as a file may not hold, and what solution and lab must have in common."""
    found = [f"{cell.id} has outputs" for cell in lab.cells if cell.cell_type == "code" and cell.outputs]
    lines = [line for cell in lab.cells for line in cell.source.splitlines()]
    found += [f"marker in the lab: {line}" for line in lines if looks_like_marker(line)]
    if not exercises(solution):
        found.append("no exercise")
    if verdicts(solution) != dict.fromkeys(exercises(solution), "passed"):
        found.append(f"stored verdicts of the solution: {verdicts(solution)}, exercises: {exercises(solution)}")
    return found


def problems_of_untouched_run(lab, path) -> list[str]:
    """Run a lab as it is handed out: it must reach its end, and every exercise must say that it is not begun."""
    expected = dict.fromkeys(exercises(lab), "not begun")
    said = verdicts(run_notebook(lab, path, timeout=120))
    return [] if said == expected else [f"verdicts: {said}, expected: {expected}"]


def untouched(lab) -> None:
    """Skip the test in a learner's copy, whose lab is meant to change. In CI this skip is a failure."""
    has_been_run = any(cell.get("execution_count") for cell in read_notebook(lab).cells)
    if has_been_run or holds_work(lab):
        pytest.skip(f"{lab.name} has been worked in")


def test_there_are_labs_and_lessons():
    assert LABS
    assert list((ROOT / "notebooks").glob("*.ipynb"))


def test_every_solution_has_its_lab_and_nothing_else_lies_there():
    there = sorted((ROOT / "labs").glob("*.ipynb"))
    assert set(LABS) <= set(there), "run `make labs`"
    if others := [path.name for path in there if path not in LABS]:
        pytest.skip(f"labs/ also holds {', '.join(others)}")  # a learner's copy; in CI a failure


@each_lab
def test_lab_is_what_build_labs_writes(lab):
    untouched(lab)
    assert lab.read_text(encoding="utf-8") == expected_labs(ROOT)[lab], "run `make labs`"


@each_lab
def test_lab_gives_nothing_away_and_its_solution_passes(lab):
    untouched(lab)
    assert problems_of_files(read_notebook(lab), read_notebook(ROOT / "solutions" / lab.name)) == []


@each_lab
def test_untouched_lab_runs_to_its_end_and_nothing_is_begun(lab):
    untouched(lab)
    assert problems_of_untouched_run(read_notebook(lab), lab) == []


FRAMEWORK = """
class Verdict:
    def __init__(self, state, exercise):
        self.state, self.exercise = state, exercise

    def __repr__(self):
        return f"{self.state} · {self.exercise}: a message"

def check(exercise, answer):
    try:
        return Verdict("passed" if answer(4) == 2 else "mistake", exercise)
    except NotImplementedError:
        return Verdict("not begun", exercise)
"""
HALF = "def half(x):\n    ### BEGIN SOLUTION\n    return x / 2\n    ### END SOLUTION"


@pytest.fixture
def made(tmp_path):
    """Builds and runs a lab of one exercise; returns solution, lab and the lab's path."""

    def make(*more, answer=HALF):
        cells = [
            prose("# A small lab"),
            code(FRAMEWORK),
            code(answer, "answer:90.half"),
            code('check("90.half", half)'),
        ]
        path = tmp_path / "solutions" / "90_fixture.ipynb"
        write_notebook(tidy(run_notebook(notebook_of(*cells, *more), path.parent.parent / "x.ipynb")), path)
        (lab,) = build_labs(tmp_path)
        return read_notebook(path), read_notebook(lab), lab

    return make


def test_sound_lab_has_no_problems(made):
    solution, lab, path = made()
    assert problems_of_files(lab, solution) == []
    assert problems_of_untouched_run(lab, path) == []


def test_wrong_solution_and_forgotten_check_are_found(made):
    solution, lab, _ = made(answer=HALF.replace("x / 2", "x / 3"))
    assert "'90.half': 'mistake'" in problems_of_files(lab, solution)[0]
    del solution.cells[-1]
    assert "stored verdicts of the solution: {}" in problems_of_files(lab, solution)[0]


def test_lab_that_passes_without_an_answer_is_found(made):
    _, lab, path = made(code('Verdict("passed", "90.half")'))
    assert problems_of_untouched_run(lab, path) != []


def test_output_and_marker_in_a_lab_are_found(made):
    solution, lab, _ = made()
    lab.cells[3].outputs = solution.cells[3].outputs
    lab.cells[2].source += "\n    ### END SOLUTION"
    assert len(problems_of_files(lab, solution)) == 2
