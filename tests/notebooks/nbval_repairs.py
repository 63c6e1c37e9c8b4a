"""nbval 0.11.0 with its defects repaired, as a pytest plugin.

nbval executes a notebook's cells and compares what they give with the stored outputs. Left alone it lets some faults
pass or waits long for them. Here

- a kernel that died is noticed within a second, not at the cell's timeout, also if it dies after the last cell;
- a cell that does not finish is a failure, even if interrupting it made it look finished (a hung `!command`), and the
  cells after it fail as not run, where nbval would expect their failure;
- a `!command` with an exit code other than 0 is a failure;
- what child processes print is shown as in JupyterLab;
- a notebook that stores nothing to compare, or what no other machine can reproduce, fails (utils/notebooks/hygiene.py);
- a process that outlives its notebook's kernel is killed, and is a failure.
"""

from __future__ import annotations

import math
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from queue import Empty

import nbval.plugin
import psutil
import pytest
from nbformat import NotebookNode
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from utils.notebooks.files import place, read_notebook, shown
from utils.notebooks.hygiene import faults

REPAIRED_VERSION = "0.11.0"
LOOK_EVERY = 0.5  # seconds between two looks at whether the kernel lives
AFTER_INTERRUPT = 5.0  # seconds that an interrupted cell has to end
STILL_ALIVE = 0.5  # seconds that a kernel must live on after the last cell
TO_ANSWER = 10.0  # seconds that it then has to answer a request
TO_LEAVE = 3.0  # seconds that a notebook's processes have to end after their kernel

_MARK = "NOTEBOOK_UNDER_TEST"


def pytest_configure(config: pytest.Config) -> None:
    """Put the repairs in place, if this is the nbval that they were written for."""
    version = metadata.version("nbval")
    if version != REPAIRED_VERSION:
        raise pytest.UsageError(
            f"nbval {version} is installed, and tests/notebooks/nbval_repairs.py repairs {REPAIRED_VERSION}: install "
            f"that one (`pip install nbval=={REPAIRED_VERSION}`), or review each repair against the new version."
        )
    nbval.plugin.RunningKernel = WatchedKernel


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(parent: pytest.Collector) -> Iterator[None]:
    """Let nbval say which files are notebooks; collect those with the repairs."""
    collectors = yield
    return [Notebook.from_parent(parent, path=c.path) if type(c) is IPyNbFile else c for c in collectors]


class KernelDied(Exception):
    """The kernel's process ended while a cell ran. The message says how."""


class CellNotRun(Exception):
    """A cell before this one hung or ended the kernel."""


class UnsoundNotebook(Exception):
    """What the notebook stores cannot be compared, or not elsewhere."""


class WatchedKernel(RunningKernel):
    """A kernel whose death ends the waiting for its messages."""

    def get_message(self, stream: str, timeout: float | None = None) -> dict:
        """The next message. Raises Empty at the timeout, KernelDied if none can come any more."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return super().get_message(stream, timeout=max(0.0, min(LOOK_EVERY, deadline - time.monotonic())))
            except Empty:
                if not self.is_alive():
                    raise KernelDied(self._how_it_ended()) from None
                if time.monotonic() >= deadline:
                    raise

    def _how_it_ended(self) -> str:
        process = getattr(getattr(self, "km", None) and self.km.provisioner, "process", None)
        code = process.returncode if process else None
        if code is None:
            return "the kernel is gone"
        return (
            f"the kernel was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"the kernel left with code {code}"
        )

    def trouble_after_last_cell(self) -> str:
        """Why the kernel, which should wait for the next cell, cannot run one; empty if it can."""
        deadline = time.monotonic() + STILL_ALIVE
        try:
            while time.monotonic() < deadline and self.is_alive():
                time.sleep(0.05)
            self.await_reply(self.kc.kernel_info(), timeout=TO_ANSWER)
        except KernelDied as death:
            return str(death)
        except Empty:
            return f"the kernel did not answer within {TO_ANSWER:g} seconds"
        return "" if self.is_alive() else self._how_it_ended()

    def make_failing_commands_raise(self) -> None:
        """Let `!command` raise if its exit code is not 0."""
        message = self.kc.execute("get_ipython().system_raise_on_error = True", silent=True, store_history=False)
        self.await_reply(message, timeout=10)


class Notebook(IPyNbFile):
    """A notebook file: first what it stores is looked at, then its cells are run and compared."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.ended_by = ""  # why no further cell can run
        self.interrupted_at: float | None = None
        self.last_run: NotebookNode | None = None  # the cell that was run last
        self.mark = uuid.uuid4().hex  # in the environment of the kernel and of every process it starts

    def collect(self) -> Iterator[pytest.Item]:
        """nbval's cells, each with the repairs, after the look at what is stored."""
        yield StoredOutputs.from_parent(self, name="stored outputs")
        for cell in super().collect():
            yield Cell.from_parent(self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options)

    def setup(self) -> None:
        """Start the kernel. With pytest's variable set, ipykernel would not capture what child processes print."""
        with _environment(PYTEST_CURRENT_TEST=None, **{_MARK: self.mark}):
            super().setup()
        self.kernel.make_failing_commands_raise()

    def get_sanitize_files(self) -> list[str]:
        """nbval's, found from any working directory."""
        return [str(self.config.rootpath / file) for file in super().get_sanitize_files()]

    def get_kernel_message(self, timeout: float | None = None, stream: str = "iopub") -> dict:
        """nbval's; a cell that goes on printing after its interrupt is given up."""
        if self.timed_out:
            self.interrupted_at = self.interrupted_at or time.monotonic()
            if time.monotonic() - self.interrupted_at > AFTER_INTERRUPT:
                raise Empty
        return super().get_kernel_message(timeout, stream)

    def teardown(self) -> None:
        """Stop the kernel, also a dead one, whose channels and connection file nbval leaves; then look what is left.

        A kernel that the last cell ended, or left unable to answer, makes the notebook fail.
        """
        problems = []
        if self.last_run is not None and not self.ended_by and hasattr(self.kernel, "km"):
            trouble = self.kernel.trouble_after_last_cell()
            if trouble:
                problems.append(f"{place(self.path, self.last_run)}\nThe kernel died after this cell: {trouble}.")
        super().teardown()
        if hasattr(self.kernel, "km"):
            self.kernel.stop()
        left = self._processes()
        deadline = time.monotonic() + TO_LEAVE
        while left and time.monotonic() < deadline:
            time.sleep(0.1)
            left = self._processes()
        if left:
            names = ", ".join(f"{process.pid} ({process.name()})" for process in left)
            for process in left:
                process.kill()
            problems.append(f"{shown(self.path)} left processes behind, which were killed: {names}.")
        if problems:
            pytest.fail("\n".join(problems), pytrace=False)

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:  # another user's, or gone in the meantime
                continue
        return found


class Cell(IPyNbCell):
    """A code cell: run, and its outputs compared."""

    def setup(self) -> None:
        """Nothing: nbval would mark the cells after a hung one as expected to fail."""

    def runtest(self) -> None:
        """nbval's, but hanging and killing the kernel are failures, and the cells after that fail as not run."""
        if self.parent.ended_by:
            raise CellNotRun(f"not run: {self.parent.ended_by}")
        self.parent.last_run = self.cell
        try:
            super().runtest()
        except KernelDied as death:
            self._end_notebook(str(death), f"The kernel died while this cell ran: {death}.")
        except Exception as error:
            if not self.parent.timed_out:
                raise
            self._end_with_timeout(getattr(error, "inner_traceback", None))
        if self.parent.timed_out:  # interrupted, and yet no error: a hung `!command` ends so
            self._end_with_timeout()

    def _end_with_timeout(self, traceback: str | None = None) -> None:
        limit = f"{self.config.option.nbval_cell_timeout:g} seconds"
        self._end_notebook(f"it did not finish within {limit}", f"This cell did not finish within {limit}.", traceback)

    def _end_notebook(self, why: str, message: str, traceback: str | None = None) -> None:
        self.parent.ended_by = f"{self.name}, before this one, ended the run: {why}"
        error = NbCellError(self.cell_num, f"{place(self.path, self.cell)}\n{message}", self.cell.source, traceback)
        raise error from None

    def stop(self) -> None:
        """nbval calls this where it means the kernel's."""
        self.parent.kernel.stop()

    def repr_failure(self, excinfo: pytest.ExceptionInfo) -> str:
        """nbval's, but one line where the failure is not in this cell."""
        if isinstance(excinfo.value, CellNotRun):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class StoredOutputs(pytest.Item):
    """The look at what the notebook's file stores."""

    def runtest(self) -> None:
        """Fail with one sentence for each fault."""
        found = faults(read_notebook(self.path), self.path)
        if found:
            raise UnsoundNotebook("\n".join(found))

    def repr_failure(self, excinfo: pytest.ExceptionInfo) -> str:
        """The sentences alone, for they name notebook and cell."""
        if isinstance(excinfo.value, ValueError | UnsoundNotebook):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple:
        """Where pytest says that the failure is."""
        return self.path, 0, f"{shown(self.path)}::{self.name}"


@contextmanager
def _environment(**changes: str | None) -> Iterator[None]:
    """The process's environment with `changes` (None removes a variable), put back afterwards."""
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(changes: dict[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
