"""A rank on another process of the job, such that rank 0's supervisor watches it like one that it has started."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import threading
from typing import Any

from utils.runtime.processes import RankProcess
from utils.runtime.real_job.words import Host, Line
from utils.runtime.recorder import clock
from utils.runtime.report import LOST

UNHEARD = 3.0  # seconds that rank 0 may take until it hears of another rank's error by itself


class RemoteProcess:
    """What the supervisor asks of a process: has it ended, how, and a thing that becomes readable when it has."""

    def __init__(self) -> None:
        self.exitcode: int | None = None
        self.sentinel, self._open_end = os.pipe()
        self._over, self._lock = threading.Event(), threading.Lock()

    def end(self, code: int) -> None:
        """It has ended; said once or several times, the first counts."""
        with self._lock:
            if self.exitcode is None:
                self.exitcode = code
                os.close(self._open_end)
        self._over.set()

    def join(self, timeout: float | None = None) -> None:
        self._over.wait(timeout)

    def forget(self) -> None:
        os.close(self.sentinel)


class RemoteRank(RankProcess):
    """`pipe` gives what the rank says; `say` reaches it by way of the process of the job that has started it."""

    def __init__(self, line: Line, folder: str, rank: int, same_host: bool) -> None:
        ours, self._theirs = multiprocessing.Pipe(duplex=False)
        super().__init__(RemoteProcess(), ours)
        self._line, self._folder, self._rank, self._same_host = line, folder, rank, same_host

    def say(self, what: Any) -> None:
        with contextlib.suppress(OSError):
            self._line.say("say", what)

    def write_stack(self) -> None:
        with contextlib.suppress(OSError):
            self._line.say("write stack")

    def descendants(self) -> list:
        return []  # the process that has started the rank ends what it leaves

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._line.say("end")
        self.pipe.close()

    def take(self, what: str, detail: Any) -> None:
        """Something that its host tells; called in the thread that hears."""
        if what == "rank says":
            with contextlib.suppress(OSError):  # nobody listens any more
                self._theirs.send_bytes(detail)
        elif what == "exited":
            self.process.end(detail)
        elif not self._same_host:  # "printed" or "stack": a file that on the same machine is in this folder already
            with open(os.path.join(self._folder, f"{what}.{self._rank}"), "wb") as file:
                file.write(detail)


class Member:
    """Another process of the job, as rank 0 knows it. A thread hears it all the time."""

    def __init__(self, line: Line, host: Host, interrupt: Any) -> None:
        self.host, self.line = host, line
        self.said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()  # that it has come somewhere
        self.rank: RemoteRank | None = None  # its part of the present launch
        self._interrupt = interrupt
        threading.Thread(target=self._hear, daemon=True, name=f"hear rank {host.rank} of the job").start()

    def start(self, job: Any, folder: str, same_host: bool) -> RemoteRank:
        """Have it start its rank of a launch."""
        self.rank = RemoteRank(self.line, folder, self.host.rank, same_host)
        self.line.say("start", job)
        return self.rank

    def over(self) -> None:
        """The launch is over: wait until its host has tidied up."""
        rank, self.rank = self.rank, None
        if rank is not None:
            rank.process.join(10)
            rank.process.end(LOST)
            rank.process.forget()

    def _hear(self) -> None:
        try:
            while True:
                what, detail = self.line.hear()
                rank = self.rank
                if what == "time":
                    self.line.say("time", clock())
                elif what in ("rank says", "exited", "printed", "stack"):
                    if rank is not None:
                        rank.take(what, detail)
                else:
                    self.said.put((what, detail))
                    if what == "failed":
                        self._interrupt_later()
        except (EOFError, OSError, pickle.UnpicklingError):
            self.said.put(("lost", None))
            rank = self.rank
            if rank is not None:
                rank.process.end(LOST)

    def _interrupt_later(self) -> None:
        """If rank 0 computes on and on, it is interrupted, so that the error is told soon."""
        timer = threading.Timer(UNHEARD, lambda: self.said.empty() or self._interrupt())
        timer.daemon = True
        timer.start()
