"""Where ranks come from: forked from a server that has imported torch, or spawned ahead of time and kept ready.

Every rank is a fresh process, used once: no state from the last run, and a run that fails or hangs is killed whole.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import torch.multiprocessing

from utils.runtime.job import Setup
from utils.runtime.rank import rank_main

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

    def end(self) -> None:
        """Kill it and what it started (data loaders' workers, say), if it is still there, and close the pipe."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            if self.process.is_alive():
                children = psutil.Process(self.process.pid).children(recursive=True)
                self.process.kill()
                for child in children:
                    child.kill()
        self.pipe.close()


_living: set[RankProcess] = set()
_idle: list[RankProcess] = []
_lock = threading.Lock()


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


def take(count: int, method: str) -> list[RankProcess]:
    """`count` fresh processes that wait for their job. End them with `release`."""
    taken: list[RankProcess] = []
    if method == "spawn":
        with _lock:
            while _idle and len(taken) < count:
                candidate = _idle.pop()
                if candidate.process.is_alive():
                    taken.append(candidate)
                else:
                    release([candidate])
    return taken + _start(count - len(taken), method)


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


def warm_up() -> None:
    """Start the fork server, so that it imports torch while the notebook does other things."""
    if choose_start_method("auto") == "forkserver":
        _ensure_fork_server()


def _start(count: int, method: str) -> list[RankProcess]:
    if count < 1:
        return []
    if method == "forkserver":
        _ensure_fork_server()
    ours, theirs = zip(*(multiprocessing.Pipe() for _ in range(count)), strict=True)
    try:
        with _without_main():
            context = torch.multiprocessing.start_processes(
                rank_main, (list(theirs),), nprocs=count, join=False, start_method=method
            )
    except BaseException:  # also an interrupt: a process without a pipe leaves by itself
        for pipe in ours:
            pipe.close()
        raise
    finally:
        for pipe in theirs:
            pipe.close()
    started = [RankProcess(process, pipe) for process, pipe in zip(context.processes, ours, strict=True)]
    _living.update(started)
    return started


def _ensure_fork_server() -> None:
    """Start the fork server if it does not run, with this suite on its path and not whatever lies in the folder."""
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload(["utils.runtime.preload"])
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SUITE.parent), before["PYTHONPATH"])))
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
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
