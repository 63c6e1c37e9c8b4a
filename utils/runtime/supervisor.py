"""Watches a run's ranks from start to end, and decides when it has failed.

The parent asks where the ranks are once a second, and often only when one of them has ended, so that a healthy run is
not disturbed while it is timed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import time
from multiprocessing.connection import wait
from typing import Any

from utils.runtime import report
from utils.runtime.deadlock import stuck
from utils.runtime.errors import Failure, RankDied, RankFailed, RanksHang
from utils.runtime.job import Account, Place
from utils.runtime.kernel_link import KernelLinks, LinkBytes
from utils.runtime.processes import RankProcess, kill, kill_orphans
from utils.runtime.recorder import clock

GRACE = 0.25  # seconds that others get to show what they do after a rank has failed
ASK_EVERY = 0.1  # seconds between questions once a rank has ended
ASK_IN_PEACE = 1.0  # seconds between questions before that
STANDSTILL = 0.8  # seconds for which nothing may move before ranks are called stuck
START_LIMIT = 180.0  # seconds for all ranks to start and meet; a cold disk and a busy machine are slow


class Supervisor:
    """One run, from the ranks' start to their results."""

    def __init__(self, ranks: list[RankProcess], folder: str, timeout: float, links: KernelLinks | None = None) -> None:
        self._ranks, self._folder, self._timeout, self._links = ranks, folder, timeout, links
        self._of_pipe = {each.pipe: rank for rank, each in enumerate(ranks)}
        self._ready: set[int] = set()
        self._values: dict[int, bytes] = {}
        self._failures: dict[int, Failure] = {}
        self._died: dict[int, int] = {}
        self._places: dict[int, Place] = {}
        self._accounts: dict[int, Account] = {}
        self.seconds = 0.0
        self.link_bytes: tuple[LinkBytes, ...] | None = None

    def results(self) -> tuple[list[bytes], list[Account]]:
        """Wait for all ranks. Returns pickled values and accounts by rank; raises a LaunchError."""
        everyone = set(range(len(self._ranks)))
        self._watch(lambda: self._ready == everyone, START_LIMIT, "start")
        before = self._links.counters() if self._links else ()
        start = clock()
        self._tell("go", start)
        self._watch(lambda: self._values.keys() == everyone, self._timeout, "run")
        self.seconds = clock() - start
        # Every rank is done, so nothing moves any more: counters read now are complete.
        if self._links:
            self.link_bytes = tuple(now - then for now, then in zip(self._links.counters(), before, strict=True))
        self._tell("account")
        self._watch(lambda: self._accounts.keys() == everyone, START_LIMIT, "account")
        started = [child for each in self._ranks for child in each.descendants()]
        self._tell("leave")
        kill(started)
        for each in self._ranks:
            each.process.join(1)  # else `release` would look for children of a process that is about to leave
        return [self._values[r] for r in sorted(everyone)], [self._accounts[r] for r in sorted(everyone)]

    def interrupted(self) -> str:
        """Where every rank is, for the report of an interrupt."""
        self._ask_places(0.2)
        return "\n".join(report.grouped(self._told()))

    def _watch(self, done: Any, limit: float, phase: str) -> None:
        """Take in what ranks say until `done()`. Raises as soon as it cannot come true any more."""
        deadline = clock() + limit
        asked, before, since = clock(), None, clock()
        while not done():
            ask_every = ASK_EVERY if self._values or before else ASK_IN_PEACE
            self._listen(max(0.0, min(asked + ask_every, deadline) - clock()))
            if self._failures or self._died:
                self._fail()
            if done():
                return
            if clock() >= deadline:
                self._ask_places(GRACE)
                if self._failures or self._died:
                    self._fail()
                if not done():
                    self._hang(_too_late(phase, limit))
            elif phase == "run" and clock() - asked >= ask_every:
                now = self._standstill()
                if now is None or now != before:
                    since = clock()
                elif clock() - since > STANDSTILL:
                    self._hang("the ranks wait for each other for ever" + self._ended_text())
                asked, before = clock(), now
                self._places.clear()
                self._tell("where")

    def _listen(self, seconds: float) -> None:
        """Take in every message that is there, waiting at most `seconds` for the first, and notice who died."""
        live = [r for r in range(len(self._ranks)) if r not in self._died]
        pipes = [self._ranks[r].pipe for r in live]
        ends = {self._ranks[r].process.sentinel: r for r in live}
        lost = [self._links.end] if self._links else []
        for thing in wait([*pipes, *ends, *lost], seconds):
            if thing in lost:
                raise self._links.loss()
            if thing in ends:
                self._notice_death(ends[thing])
            else:
                self._take_messages(self._of_pipe[thing])

    def _take_messages(self, rank: int) -> None:
        pipe = self._ranks[rank].pipe
        with contextlib.suppress(EOFError, OSError):  # its death is noticed by the process, not by the pipe
            while pipe.poll():
                self._take(rank, *pickle.loads(pipe.recv_bytes()))

    def _take(self, rank: int, what: str, detail: Any) -> None:
        if what == "ready":
            self._ready.add(rank)
        elif what == "returned":
            self._values[rank] = detail
        elif what == "raised":
            self._failures[rank] = detail
        elif what == "place":
            self._places[rank] = detail
        elif what == "account":
            self._accounts[rank] = detail

    def _notice_death(self, rank: int) -> None:
        process = self._ranks[rank].process
        process.join(1)
        self._take_messages(rank)  # what it said before
        if process.exitcode is not None:
            self._died[rank] = process.exitcode

    def _tell(self, order: str, detail: Any = None) -> None:
        for rank, each in enumerate(self._ranks):
            if rank not in self._died:
                each.say((order, detail))

    def _ask_places(self, seconds: float) -> None:
        """Fresh places of all living ranks, as far as they answer within `seconds`."""
        self._places.clear()
        self._tell("where")
        end = clock() + seconds
        while clock() < end and len(self._places) < len(self._ranks) - len(self._died):
            self._listen(end - clock())
        silent = [r for r in range(len(self._ranks)) if r not in self._places and r not in self._died]
        if silent and hasattr(signal, "SIGUSR1"):  # Python's lock is held in C: let faulthandler write the place
            for rank in silent:
                self._ranks[rank].write_stack()
            time.sleep(0.05)

    def _standstill(self) -> Any:
        """What the ranks wait for, if none of them can go on; else None."""
        living = [r for r in range(len(self._ranks)) if r not in self._values]
        issued = {rank: place.issued for rank, place in self._places.items()}
        if len(self._places) < len(self._ranks) or not stuck(self._places, living, issued):
            return None
        return [
            (rank, round(self._places[rank].cpu_seconds, 2), op.channel, op.sequence)
            for rank in living
            for op in self._places[rank].pending
        ]

    def _fail(self) -> None:
        """Raise for the first failure, after the others had a moment to show where they are."""
        if self._died:
            kill_orphans(self._folder)
        end = clock() + GRACE
        while clock() < end and len(self._failures) + len(self._values) + len(self._died) < len(self._ranks):
            self._listen(end - clock())
        self._ask_places(GRACE)
        told = self._told()
        real = [f for f in self._failures.values() if not f.is_echo]
        if self._died and not real:
            dead = {r: report.exit_text(code) for r, code in self._died.items()}
            lines = report.grouped(dead) + report.grouped({r: t for r, t in told.items() if r not in dead})
            raise RankDied("\n".join(lines), dict(self._died))
        failures = list(self._failures.values())
        others = {r: text for r, text in told.items() if r not in self._failures}
        ordered = tuple(sorted(failures, key=lambda f: (f.is_echo, f.time)))
        raise RankFailed(report.failure_report(failures, others), ordered)

    def _hang(self, why: str) -> None:
        raise RanksHang("\n".join([why + ":", *report.grouped(self._told())]))

    def _told(self) -> dict[int, str]:
        told = {}
        for rank in range(len(self._ranks)):
            if rank in self._died:
                told[rank] = report.exit_text(self._died[rank])
            elif rank in self._failures:
                failure = self._failures[rank]
                told[rank] = (
                    "lost the connection" if failure.is_echo else f"raised {failure.kind}: {failure.first_line}"
                )
            elif rank in self._values:
                told[rank] = "has finished"
            else:
                told[rank] = report.place_text(self._places.get(rank), self._stack(rank))
        return told

    def _stack(self, rank: int) -> str:
        with contextlib.suppress(OSError), open(os.path.join(self._folder, f"stack.{rank}")) as file:
            return file.read()
        return ""

    def _ended_text(self) -> str:
        return f", {report.ranks(sorted(self._values))} having finished" if self._values else ""


def _too_late(phase: str, limit: float) -> str:
    if phase == "run":
        return f"the run was not over after {limit:g} s (timeout={limit:g})"
    return f"the ranks had not {'started' if phase == 'start' else 'told what they recorded'} after {limit:g} s"
