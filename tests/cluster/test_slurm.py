"""Solutions as Slurm jobs, submitted with clusters/slurm.sbatch to a controller and a daemon on this machine."""

import pytest

from tests.cluster.notebooks import SETUP, write_notebook
from tests.cluster.slurm import ROOT, needs_slurm, slurm, submit
from tests.cluster.stored import missing_lines, summary

pytestmark = [pytest.mark.cluster, *needs_slurm]

SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_passes_its_checks_as_a_job(solution, environment, tmp_path):
    output = tmp_path / "out"
    code = submit(environment, f"--output={output}", "clusters/slurm.sbatch", str(solution))
    printed = output.read_text()
    assert code == 0, printed[-3000:]
    cells, passed, checked = summary(printed, "2 ranks, 1 host")
    assert cells and passed == checked > 0
    assert missing_lines(solution, printed) == []


def test_a_job_of_three_ranks_that_fails_has_a_status_that_says_so(environment, tmp_path):
    output = tmp_path / "out"
    notebook = write_notebook(tmp_path / "a.ipynb", SETUP, "print('sizes', launch(size, 3).values)", "1 / 0")
    more = {"RANKS_PER_NODE": "3"}
    code = submit(environment | more, f"--output={output}", "clusters/slurm.sbatch", str(notebook))
    assert code == 1
    assert "sizes (3, 3, 3)" in output.read_text()
    assert "a.ipynb: Cell In[3] raised" in output.read_text() and "ZeroDivisionError" in output.read_text()
