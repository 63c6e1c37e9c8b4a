"""Where ranks come from: forked from a server that has imported torch, or spawned ahead of time and kept ready.

Every rank is a fresh process, used once: no state from the last run, and a run that fails or hangs is killed whole.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import torch.multiprocessing

from utils.runtime.entry import rank_entry
from utils.runtime.errors import LaunchError
from utils.runtime.interrupts import uninterrupted
from utils.runtime.job import Setup
from utils.runtime.kernel_link import Door
from utils.runtime.rank import IN_RANK

START_METHODS = ("auto", "forkserver", "spawn")
SUITE = Path(__file__).resolve().parents[1]  # this `utils` package

#: Callables run in every rank before it joins its group, with the rank as argument. Empty in ordinary use.
RANK_SETUP: list[Setup] = []


@dataclass(eq=False)
class RankProcess:
    """A process and the parent's end of its pipe."""

    process: BaseProcess
    pipe: Connection

    def say(self, what: Any) -> None:
        """Send a message; a process that is gone is noticed elsewhere."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(pickle.dumps(what))

    def write_stack(self) -> None:
        """Make it write its place into the run's folder. For systems with signals."""
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGUSR1)

    def descendants(self) -> list[psutil.Process]:
        """What the process has started and is still there: data loaders' workers, programs."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True) if _has_children(self.process.pid) else []
        except (psutil.Error, OSError):
            return []

    def end(self) -> None:
        """Kill it and what it started, if it is still there, and close the pipe."""
        with contextlib.suppress(OSError, ValueError):
            if self.process.is_alive():
                started = self.descendants()
                self.process.kill()
                kill(started)
        self.pipe.close()


def kill(processes: list[psutil.Process]) -> None:
    """Kill those that are still there."""
    for each in processes:
        with contextlib.suppress(psutil.Error):
            each.kill()


def kill_orphans(folder: str) -> None:
    """Kill programs that a rank of the run started before it died. They carry the run's folder in their environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(IN_RANK) == folder:
                process.kill()


def _has_children(pid: int) -> bool:
    """Quick where the kernel lists them (Linux); True where one must look."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return any(Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in threads)
    except OSError:
        return True


_living: set[RankProcess] = set()
_idle: list[RankProcess] = []
_lock = threading.Lock()  # guards _idle
_starting = threading.Lock()  # one start at a time: it changes the environment and `__main__` for a moment


def choose_start_method(start: str) -> str:
    """`auto` is the fork server on Linux. On macOS forked gloo ranks abort, and Windows cannot fork: spawn there."""
    if start not in START_METHODS:
        raise ValueError(
            f"start is {start!r}; it can be {', '.join(map(repr, START_METHODS))}. Leave it out for 'auto'."
        )
    if start == "auto":
        return "forkserver" if sys.platform == "linux" else "spawn"
    if start not in multiprocessing.get_all_start_methods():
        raise ValueError(f"start is {start!r}, which this system does not have: use 'spawn'.")
    return start


def take(count: int, method: str, doors: tuple[Door, ...] = ()) -> list[RankProcess]:
    """`count` fresh processes that wait for their job, each behind its door if there are any. End with `release`."""
    taken: list[RankProcess] = []
    if method == "spawn" and not doors:  # idle ones have imported torch, too late for joining a node
        with _lock:
            while _idle and len(taken) < count:
                candidate = _idle.pop()
                if candidate.process.is_alive():
                    taken.append(candidate)
                else:
                    release([candidate])
    return taken + _start(count - len(taken), method, doors)


def keep_ready(count: int) -> None:
    """Start spawned processes until `count` idle ones import torch in the background, for the next run."""
    with _lock:
        missing = count - len(_idle)
        if missing > 0:
            _idle.extend(_start(missing, "spawn"))


def release(processes: list[RankProcess]) -> None:
    """End these processes now, whatever they do, and wait until they are gone."""
    for each in processes:
        each.end()
    for each in processes:
        each.process.join(timeout=5)
        _living.discard(each)


def _start(count: int, method: str, doors: tuple[Door, ...] = ()) -> list[RankProcess]:
    """Start processes. A fork server that is just dying is noticed by the failure, and started again."""
    if count < 1:
        return []
    for _ in range(3):
        started: list[RankProcess] = []
        try:
            with _starting, uninterrupted(), _without_main():
                started = _start_once(count, method, doors)
            return started
        except KeyboardInterrupt:  # it was held back until here
            release(started)
            raise
        except (EOFError, ConnectionError):
            time.sleep(0.3)
        except OSError as error:
            if "AF_UNIX" in str(error):
                folder = tempfile.gettempdir()
                raise LaunchError(
                    f"the path of the temporary folder, {folder}, is too long for a socket: set TMPDIR to a shorter "
                    "one and restart the kernel."
                ) from None
            raise
    raise LaunchError("the fork server ends as soon as it starts: run `python -m utils doctor`, or use start='spawn'.")


def _start_once(count: int, method: str, doors: tuple[Door, ...]) -> list[RankProcess]:
    if method == "forkserver":
        _ensure_fork_server()
    ours, theirs = zip(*(multiprocessing.Pipe() for _ in range(count)), strict=True)
    try:
        if method == "spawn" and doors:
            processes = _spawn_without_torch(count, list(theirs), doors)
        else:
            processes = torch.multiprocessing.start_processes(
                rank_entry, (list(theirs), doors), nprocs=count, join=False, start_method=method
            ).processes
    except BaseException:  # a process without a pipe leaves by itself
        for pipe in ours:
            pipe.close()
        raise
    finally:
        for pipe in theirs:
            pipe.close()
    started = [RankProcess(process, pipe) for process, pipe in zip(processes, ours, strict=True)]
    _living.update(started)
    return started


def _spawn_without_torch(count: int, pipes: list[Connection], doors: tuple[Door, ...]) -> list[BaseProcess]:
    """torch's own way to spawn imports torch before our first line runs, which gives the process threads."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=rank_entry, args=(index, pipes, doors)) for index in range(count)]
    for process in processes:
        process.start()
    return processes


def _ensure_fork_server() -> None:
    """Start the fork server if it does not run, with this suite on its path and not whatever lies in the folder."""
    forkserver.set_forkserver_preload(["utils.runtime.preload"])
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SUITE.parent), before["PYTHONPATH"])))
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide `__main__`: a new process would import it again, running a script's launch a second time.

    Functions of `__main__` travel by value, so the ranks do not need it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_all() -> None:
    """At exit: multiprocessing would wait for ever for processes that wait for us."""
    release(list(_living))


# Registered after multiprocessing's own exit handler, and so run before it.
atexit.register(_end_all)
