"""Faults planted in notebooks: each must make pytest fail within seconds and name notebook and cell."""

import nbformat
import pytest

from tests.notebooks import nbval_repairs
from tests.notebooks.planted import NBVAL, Outcome, Planted, code, notebook_of, run_pytest, stored, write
from utils.notebooks.execute import run_notebook, tidy

pytestmark = pytest.mark.rest  # thirteen notebooks with a fault each, and a kernel for each of them

TIMEOUT = 2
AFTER = Planted("print('after')", "after\n")
FROM_A_CHILD = """
import os
import subprocess
print("from the parent", flush=True)
os.system("echo from a child")
_ = subprocess.run(["echo", "from another"])
"""
RESISTS = """
import time
while True:
    try:
        print("still here", flush=True)
        time.sleep(0.1)
    except KeyboardInterrupt:
        pass
"""


def with_widget_state() -> nbformat.NotebookNode:
    notebook = stored(Planted("print(1)", "1\n"))
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return notebook


def stripped() -> nbformat.NotebookNode:
    return notebook_of(code("print(1)", id="c1"), code("print(2)", id="c2"))


FAULTS = {
    "dies_of_exit": stored(Planted("import os; os._exit(3)"), AFTER),
    "dies_of_a_signal": stored(Planted("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), AFTER),
    "hangs": stored(Planted("import time\ntime.sleep(1000)"), AFTER),
    "hangs_and_resists": stored(Planted(RESISTS), AFTER),
    "hangs_in_a_command": stored(Planted("!sleep 1000"), AFTER),
    "fails_in_a_command": stored(Planted("!false"), AFTER),
    "fails_in_an_assigned_command": stored(Planted("lines = !false"), AFTER),
    "changed": stored(Planted("print(2 + 2)", "5\n"), AFTER),
    "stripped": stripped(),
    "widget_state": with_widget_state(),
    "dies_after_the_last_cell": stored(
        AFTER, Planted("import os, threading; threading.Timer(0.2, os._exit, (3,)).start()")
    ),
    "exits_in_the_last_cell": stored(AFTER, Planted("exit()")),
    "leaves_a_process": stored(
        Planted("import subprocess\n_ = subprocess.Popen(['sleep', '1000'], start_new_session=True)"), AFTER
    ),
}

# The test that must fail, and words of its message. Cells count from 0, as nbval counts.
EXPECTED = {
    "dies_of_exit": ("Cell 0", "the kernel left with code 3"),
    "dies_of_a_signal": ("Cell 0", "the kernel was killed by SIGKILL"),
    "hangs": ("Cell 0", f"did not finish within {TIMEOUT} seconds"),
    "hangs_and_resists": ("Cell 0", f"did not finish within {TIMEOUT} seconds"),
    "hangs_in_a_command": ("Cell 0", f"did not finish within {TIMEOUT} seconds"),
    "fails_in_a_command": ("Cell 0", "CalledProcessError"),
    "fails_in_an_assigned_command": ("Cell 0", "CalledProcessError"),
    "changed": ("Cell 0", "Cell outputs differ"),
    "stripped": ("stored outputs", "stripped: no cell has an output"),
    "widget_state": ("stored outputs", "carries widget state"),
    "dies_after_the_last_cell": ("Cell 1", "The kernel died after this cell: the kernel left with code 3"),
    "exits_in_the_last_cell": ("Cell 1", "The kernel died after this cell"),
    "leaves_a_process": ("Cell 1", "left processes behind"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory) -> Outcome:
    """One pytest session over all planted faults and a sound notebook: a fault must not touch its neighbours."""
    folder = tmp_path_factory.mktemp("planted")
    sound = notebook_of(code(FROM_A_CHILD), code("1 + 1"), code("raise ValueError('announced')", "raises-exception"))
    write(folder, sound=tidy(run_notebook(sound, folder / "sound.ipynb")), **FAULTS)
    return run_pytest(folder, NBVAL, "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={TIMEOUT}")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_fails_within_seconds_and_names_notebook_and_cell(session, name):
    failing, words = EXPECTED[name]
    assert words in session.failures.get(f"{name}.ipynb::{failing}", "passed"), session.text
    assert f"{name}.ipynb::{failing}" in session.text
    assert session.seconds[f"{name}.ipynb"] < 30


@pytest.mark.parametrize("name", ["dies_of_exit", "dies_of_a_signal", "hangs", "hangs_in_a_command"])
def test_cells_after_the_end_of_a_run_fail_as_not_run(session, name):
    assert "not run: Cell 0, before this one, ended the run" in session.failures[f"{name}.ipynb::Cell 1"]


def test_message_of_a_hung_cell_shows_where_it_stood(session):
    message = session.failures["hangs.ipynb::Cell 0"]
    assert "cell c1" in message
    assert "time.sleep(1000)" in message
    assert "KeyboardInterrupt" in message


def test_sound_notebook_passes_beside_the_faults_and_shows_what_children_print(session):
    assert [name for name in session.failures if name.startswith("sound.ipynb")] == []
    assert session.seconds["sound.ipynb"] > 0


def test_session_fails_and_leaves_no_process(session):
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert session.left == ()


def test_children_are_captured_when_notebooks_are_stored():
    notebook = notebook_of(code(FROM_A_CHILD))
    output = run_notebook(notebook, nbval_repairs.__file__).cells[0].outputs[0].text
    assert sorted(output.splitlines()) == ["from a child", "from another", "from the parent"]


def test_another_nbval_is_refused(monkeypatch):
    monkeypatch.setattr(nbval_repairs, "REPAIRED_VERSION", "0.10.0")
    with pytest.raises(pytest.UsageError, match=r"nbval 0.11.0 is installed.*nbval==0.10.0"):
        nbval_repairs.pytest_configure(None)


@pytest.mark.long
@pytest.mark.parametrize("name", ["dies_of_a_signal", "hangs_and_resists", "hangs_in_a_command"])
def test_ten_times_and_still_no_process_left(tmp_path, name):
    write(tmp_path, **{f"{name}_{number}": FAULTS[name] for number in range(10)})
    outcome = run_pytest(tmp_path, NBVAL, "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={TIMEOUT}")
    assert all(f"{name}_{number}.ipynb::Cell 0" in outcome.failures for number in range(10))
    assert outcome.left == ()
