"""Two jobs and too few GPUs: ranks that take them one by one can wait for ever, gangs cannot.

    outcome = run_jobs([JobSpec("A", ranks=3), JobSpec("B", ranks=3)], slots=4, gang=False)
    outcome.deadlocked, outcome.finished, outcome.states

A rank is a real process, a GPU a file whose lock it takes (`slots.py`). Without a gang each rank takes a slot as soon
as it is started, the jobs' ranks in turns, and keeps it while it waits for the rest of its job. With one a job's ranks
are started when there are slots for all of them, and take none before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from utils.runtime.errors import RanksHang
from utils.runtime.jobs.slots import is_taken, make_slots, slot_files, take_all
from utils.theory.arguments import check_all, check_amount, check_text, check_whole, check_yes_or_no

MOST_SLOTS = 16
_RANK = Path(__file__).with_name("slot_rank.py")
_POLL = 0.005  # seconds


@dataclass(frozen=True)
class JobSpec:
    """A job that needs a slot for each of its `ranks` at the same time. seconds: how long it works then."""

    name: str
    ranks: int
    seconds: float = 0.1

    def __post_init__(self) -> None:
        check_text("name", self.name, "what the job is called")
        if not self.name.isalnum():
            raise ValueError(f"name is {self.name!r}; it is part of file names: give letters and digits")
        check_whole("ranks", self.ranks, "how many slots the job needs", most=MOST_SLOTS)
        check_amount("seconds", self.seconds, "how long the job works", "such as 0.1", least=0)


@dataclass(frozen=True)
class RankState:
    """What a rank does: "waits" for a slot, "holds" one and waits for its job, "works", "done", or "not started"."""

    doing: str
    slot: int | None = None

    def __str__(self) -> str:
        if self.slot is None or self.doing == "done":
            return {"waits": "waits for a slot"}.get(self.doing, self.doing)
        holds = f"holds slot {self.slot}"
        return f"{holds}, waits for its job" if self.doing == "holds" else f"{holds}, {self.doing}"


@dataclass(frozen=True)
class Outcome:
    """How the jobs ended. finished: names, in the order in which their last rank was done.

    deadlocked: no job can go on: every slot is taken, its lock refused by the kernel, and every job that is left has a
    rank that waits for one. states: of every rank at the end, by job.
    """

    deadlocked: bool
    finished: tuple[str, ...]
    states: dict[str, tuple[RankState, ...]]
    gang: bool

    def __str__(self) -> str:
        how = "as gangs" if self.gang else "rank by rank"
        end = "DEADLOCK" if self.deadlocked else f"finished: {', then '.join(self.finished)}"
        lines = [f"slots taken {how}: {end}"]
        for job, states in self.states.items():
            lines += [f"  job {job}, rank {rank}: {state}" for rank, state in enumerate(states)]
        return "\n".join(lines)

    __repr__ = __str__


def run_jobs(jobs: Sequence[JobSpec], slots: int, gang: bool, timeout: float = 30) -> Outcome:
    """Run all jobs on so many slots, until all have finished or none can go on; then no process is left.

    gang: whether a job takes all its slots at once or none. timeout: seconds; a deadlock is found at once, not by it.
    Raises ValueError for arguments out of range, OSError where there are no file locks, RanksHang at the deadline.
    """
    jobs = check_all("jobs", jobs, JobSpec, 'such as [JobSpec("A", 3), JobSpec("B", 3)]')
    check_whole("slots", slots, "how many GPUs there are", most=MOST_SLOTS)
    check_yes_or_no("gang", gang)
    check_amount("timeout", timeout, "seconds for all jobs", "such as 30")
    if len({job.name for job in jobs}) < len(jobs):
        raise ValueError(f"jobs are called {', '.join(job.name for job in jobs)}: give each a name of its own")
    for job in jobs:
        check_whole(f"ranks of job {job.name}", job.ranks, "at most the slots", most=slots)
    folder = Path(tempfile.mkdtemp(prefix="slots-"))
    room = _Room(folder, jobs)
    try:
        make_slots(folder, int(slots))
        if not gang:
            room.start_in_turns()
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if gang:
                room.admit()
            states = room.states()
            finished = room.note_finished(states)
            if len(finished) == len(jobs):
                return Outcome(False, finished, states, gang)
            if room.deadlocked(states):
                return Outcome(True, finished, states, gang)
            time.sleep(_POLL)
        raise RanksHang(f"the jobs are not over after {timeout:g} s: {Outcome(False, finished, states, gang)}")
    finally:
        room.end()
        shutil.rmtree(folder, ignore_errors=True)


class _Room:
    """The jobs at work: their processes, and what these say."""

    def __init__(self, folder: Path, jobs: Sequence[JobSpec]) -> None:
        self._folder, self._jobs = folder, jobs
        self._processes: dict[tuple[str, int], subprocess.Popen] = {}
        self._finished: list[str] = []

    def start_in_turns(self) -> None:
        """A rank of each job, then the next of each, every one when the one before has a slot or waits for one."""
        for ranks in zip_longest(*([(job, rank) for rank in range(job.ranks)] for job in self._jobs)):
            for job, rank in filter(None, ranks):
                self._start(job, rank)
                while self._state(job.name, rank).doing == "not started" and self._lives(job.name, rank):
                    time.sleep(_POLL)

    def admit(self) -> None:
        """Start every job, in order, for which there are slots enough now: all its ranks, each with its lock."""
        for job in self._jobs:
            if (job.name, 0) in self._processes:
                continue
            taken = take_all(self._folder, job.ranks)
            if taken is None:
                return  # those behind it wait too, so that a large job is not passed by small ones for ever
            for rank, (slot, file) in enumerate(taken):
                self._start(job, rank, slot, file)
                os.close(file)  # the rank's is open still: the lock stays with it alone

    def states(self) -> dict[str, tuple[RankState, ...]]:
        return {job.name: tuple(self._state(job.name, rank) for rank in range(job.ranks)) for job in self._jobs}

    def note_finished(self, states: dict[str, tuple[RankState, ...]]) -> tuple[str, ...]:
        for job, of_ranks in states.items():
            if job not in self._finished and all(state.doing == "done" for state in of_ranks):
                self._finished.append(job)
        return tuple(self._finished)

    def deadlocked(self, states: dict[str, tuple[RankState, ...]]) -> bool:
        """True only if it is for ever: a rank gives its slot back when its job is done, and no job has all its slots.

        Each slot must have a holder who says so: a rank that takes one still "waits" for a moment after.
        """
        left = [of_ranks for job, of_ranks in states.items() if job not in self._finished]
        waiting = all(any(state.doing == "waits" for state in of_ranks) for of_ranks in left)
        held = {state.slot for of_ranks in left for state in of_ranks if state.doing == "holds"}
        slots = slot_files(self._folder)
        return bool(left) and waiting and len(held) == len(slots) and all(map(is_taken, slots))

    def end(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()

    def _start(self, job: JobSpec, rank: int, slot: int | None = None, file: int | None = None) -> None:
        given = ("-",) if slot is None else (str(slot),)
        command = [sys.executable, "-I", "-S", str(_RANK), str(self._folder), job.name, str(rank), str(job.ranks)]
        self._processes[job.name, rank] = subprocess.Popen(
            [*command, str(job.seconds), *given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=() if file is None else (file,),
        )

    def _lives(self, job: str, rank: int) -> bool:
        return self._processes[job, rank].poll() is None

    def _state(self, job: str, rank: int) -> RankState:
        try:
            doing, _, slot = (self._folder / f"state.{job}.{rank}").read_text().partition(" ")
        except FileNotFoundError:
            return RankState("not started")
        return RankState(doing, int(slot) if slot else None)
