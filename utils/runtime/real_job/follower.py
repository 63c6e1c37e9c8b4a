"""Another rank than 0 of a job: comes to the same points of the notebook, and starts what rank 0 asks it for."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from utils.runtime import processes, ship
from utils.runtime.job import Job
from utils.runtime.local_ranks import Ask, cores, working_directory
from utils.runtime.outcome import Outcome
from utils.runtime.real_job.words import Host, JobStopped, Line, launch_name
from utils.runtime.recorder import clock

ANSWER = 20.0  # seconds that rank 0 has for the answer to an error, before this rank tells it itself
_PINGS = 20


class Follower:
    """One rank's part in the job. It starts the ranks that rank 0 watches."""

    def __init__(self, host: Host, line: Line) -> None:
        self._host, self._line = host, line
        self._folders: list[str] = []
        self._ahead = self._compare_clocks()

    def launch(self, ask: Ask) -> Outcome:
        # What is sent is rank 0's. This rank packs its own to give the classes of its cells the same numbers: then it
        # finds them in what comes back. What cannot be packed rank 0 tells.
        with contextlib.suppress(Exception):
            ship.pack_call(ask.fn, ask.args)
        return self.once(launch_name(ask.fn, ask.world_size), lambda: None)

    def once(self, what: str, do: Callable[[], Any]) -> Any:
        try:
            self._line.say("came", what)
            return self._serve()
        except (EOFError, OSError):
            raise JobStopped("rank 0 of the job is gone.") from None
        finally:
            while self._folders:
                shutil.rmtree(self._folders.pop(), ignore_errors=True)

    def failed(self, report: str) -> str:
        """This rank's cell has failed: rank 0 is to tell it. Returns what must be shown here because it does not."""
        try:
            self._line.say("failed", report)
            end = time.monotonic() + ANSWER
            while self._line.connection.poll(max(0.0, end - time.monotonic())):
                if self._line.hear()[0] == "stopped":
                    return ""
        except (EOFError, OSError):
            pass
        return f"rank {self._host.rank} of the job: {report}"

    def _serve(self) -> Any:
        """Do what rank 0 says, until it tells what came of it."""
        while True:
            what, detail = self._line.hear()
            if what == "start":
                self._run(*detail)
            elif what == "gave":
                return detail
            elif what == "raised":
                raise detail
            elif what == "stopped":
                raise JobStopped(detail)

    def _run(self, job: Job, start: str) -> None:
        """One rank of a launch, from its start to its end."""
        job = replace(
            job,
            folder=at_home(job, self._host.node),
            threads=max(1, cores() // job.seat.local_world_size),
            environment=dict(os.environ),
            working_directory=working_directory(),
            path=tuple(sys.path),
            suite=str(processes.SUITE),
        )
        self._folders.append(job.folder)
        child = processes.take(1, processes.choose_start_method(start))[0]
        try:
            child.say(job)
            self._pass_on(child, job)
        finally:
            processes.release([child])
        printed = os.path.join(job.folder, f"printed.{job.rank}")
        self._line.say("printed", _content(printed))
        self._line.say("exited", child.process.exitcode or 0)

    def _pass_on(self, child: processes.RankProcess, job: Job) -> None:
        """Carry messages between rank 0 and the rank, until rank 0 has had enough."""
        own, pipe, end = self._line.connection, child.pipe, child.process.sentinel
        heard = [own, pipe, end]
        while True:
            for thing in wait(heard):
                if thing is own:
                    if not self._obey(child, job, *self._line.hear()):
                        return
                elif thing is pipe:
                    if not self._tell_of(child):
                        heard.remove(pipe)
                else:
                    heard.remove(end)
                    child.process.join(1)
                    while pipe in heard and self._tell_of(child):
                        pass
                    heard = [own]
                    processes.kill_orphans(job.folder)
                    self._line.say("exited", child.process.exitcode)
                    break

    def _obey(self, child: processes.RankProcess, job: Job, what: str, detail: Any) -> bool:
        """Do what rank 0 says; False when it was the last."""
        if what == "end":
            return False
        if what == "write stack":
            with contextlib.suppress(OSError):
                os.kill(child.process.pid, signal.SIGUSR1)
            time.sleep(0.02)  # the supervisor waits 0.05 s
            self._line.say("stack", _content(os.path.join(job.folder, f"stack.{job.rank}")))
        elif what == "say":
            order, more = detail
            if order == "leave":
                started = child.descendants()
                child.say(detail)
                processes.kill(started)
            else:
                child.say((order, more - self._ahead) if order == "go" else detail)
        return True

    def _tell_of(self, child: processes.RankProcess) -> bool:
        """Pass on one message of the rank; False if there is none and will be none."""
        try:
            data = child.pipe.recv_bytes()
        except (EOFError, OSError):
            return False
        what, detail = pickle.loads(data)
        if what == "raised":  # which of the failures was first is judged by rank 0's clock
            data = pickle.dumps((what, replace(detail, time=detail.time + self._ahead)))
        self._line.say("rank says", data)
        return True

    def _compare_clocks(self) -> float:
        """Seconds by which rank 0's clock is ahead: from the quickest of some questions, half of its way each."""
        best = None
        for _ in range(_PINGS):
            asked = clock()
            self._line.say("time")
            theirs = self._line.hear()[1]
            answered = clock()
            if best is None or answered - asked < best[0]:
                best = answered - asked, theirs - (asked + answered) / 2
        return best[1]


def at_home(job: Job, node: int) -> str:
    """The run's folder on this host, made if no other rank of the host has: `job.folder` is its name so far."""
    folder = os.path.join(tempfile.gettempdir(), f"{job.folder}-{node}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def _content(path: str) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""
