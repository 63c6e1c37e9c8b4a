"""Runs 07.train with deaths in it: fresh ranks for each attempt, the same folder for all of them.

`run_with_restarts` does so under torch's agent, whose processes import torch anew for each attempt. Here the ranks come
from the fork server, in a fraction of a second, so that many deaths can be tried.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab07.exchanging import Watch
from utils.checks.lab07.job import Job, Snapshot, plain
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.runtime.jobs import faults
from utils.runtime.jobs.faults import Journal, Kill, read_journal

DEADLINE = 60.0  # seconds for one attempt, on a machine with other work; a deadlock is told at once
FIRST = "the first start"
DEAD = "dead"  # the note of a rank that is killed as planned; in it the file that it leaves half written, if any


@dataclass(frozen=True)
class Scenario:
    """What happens to a job of `ranks`: who dies when, in words `name`.

    exchanging: in the first attempt whoever empties, removes or renames a file of an earlier step dies of it instead:
        1, the first time, and so on; 0, never.
    """

    name: str
    ranks: int
    kills: tuple[Kill, ...] = ()
    steps: int = 13
    every: int = 4
    exchanging: int = 0


@dataclass(frozen=True)
class Attempt:
    """One start of all ranks. By rank: snapshots before each step, values of `reached`, (steps done, file) of
    each `torch.save`. files: in the folder at the end.

    error: what went wrong, but for a death that was planned. died: whether one was, while it saved or elsewhere.
    half: the file that a death left half written, if it is still there.
    exchanged: how many files of earlier steps a rank has emptied, removed or renamed in a step, at most.
    final: weights at the end by rank, empty if there was none.
    """

    snapshots: tuple[tuple[Snapshot, ...], ...]
    reached: tuple[tuple[int, ...], ...]
    saved: tuple[tuple[tuple[int, str], ...], ...]
    files: tuple[str, ...]
    died: Kill | None = None
    error: Mistake | None = None
    final: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    half: str = ""
    exchanged: int = 0


def attempts(answer: Any, scenario: Scenario) -> tuple[list[Attempt], Attempt]:
    """Start the ranks, and again after each planned death, as long as there is one; and the job in plain words."""
    root = Path(tempfile.mkdtemp(prefix="lab-07-"))
    found: list[Attempt] = []
    try:
        (root / "shared").mkdir()
        while not found or found[-1].died:
            notes = root / f"notes-{len(found)}"
            notes.mkdir()
            found.append(_attempt(answer, scenario, len(found), notes, root / "shared"))
        undisturbed = _read(scenario, root / "notes-0" / "plain", root / "shared")
        if not undisturbed.final:  # not even that came to its end
            raise found[0].error or Mistake("the ranks ended before they began; check again.")
        return found, undisturbed
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _attempt(answer: Any, scenario: Scenario, number: int, notes: Path, shared: Path) -> Attempt:
    kill = next((each for each in scenario.kills if each.attempt == number), None)
    cases: dict[str, Any] = {FIRST if number == 0 else "": _Trial(scenario, number, notes, shared)}
    if number == 0:
        (notes / "plain").mkdir()
        cases = {"the plain job": _Plain(scenario.steps, notes / "plain")} | cases
    try:
        run_cases(answer, cases, scenario.ranks, DEADLINE)
    except Mistake as mistake:
        attempt = _read(scenario, notes, shared)
        return replace(attempt, died=kill) if (notes / DEAD).exists() else replace(attempt, error=mistake)
    return _read(scenario, notes, shared)


def _read(scenario: Scenario, notes: Path, shared: Path) -> Attempt:
    """What the ranks have noted."""
    ranks = range(scenario.ranks)
    final = [tuple(_notes(notes / f"final.{rank}")) for rank in ranks]
    files = tuple(sorted(path.relative_to(shared).as_posix() for path in shared.rglob("*") if path.is_file()))
    half = (notes / DEAD).read_text() if (notes / DEAD).exists() else ""
    return Attempt(
        tuple(tuple(_notes(notes / f"snapshots.{rank}")) for rank in ranks),
        tuple(tuple(step for _, step in read_journal(notes, rank)) for rank in ranks),
        tuple(tuple(_notes(notes / f"saved.{rank}")) for rank in ranks),
        files,
        final=tuple(each[0] for each in final) if all(final) else (),
        half=next((file for file in files if half == str((shared / file).absolute())), ""),
        exchanged=max((n for rank in ranks for n in Counter(_notes(notes / f"exchanged.{rank}")).values()), default=0),
    )


class _Plain:
    """In a rank: the job that nobody disturbs and nobody stores."""

    def __init__(self, steps: int, notes: Path) -> None:
        self._steps, self._notes = steps, notes

    def __call__(self, answer: Any, mark: Mark) -> None:
        rank = dist.get_rank()
        job = Job(lambda snapshot: _note(self._notes / f"snapshots.{rank}", snapshot), lambda: -1)
        plain(job, self._steps)
        _note(self._notes / f"final.{rank}", job.snapshot().weights)


class _Trial:
    """In a rank: one attempt. What it notes is in the kernel's hands at once, since the rank may be killed."""

    def __init__(self, scenario: Scenario, number: int, notes: Path, shared: Path) -> None:
        self._scenario, self._number, self._notes, self._shared = scenario, number, notes, shared

    def __call__(self, answer: Any, mark: Mark) -> None:
        rank, scenario = dist.get_rank(), self._scenario
        deadly = 0 if self._number else scenario.exchanging
        journal = _Journal(self._notes, rank, self._number, () if scenario.exchanging else scenario.kills)
        watch = Watch(self._shared, journal.died_exchanging if deadly else journal.exchanged, deadly)
        journal.before_step = watch.step
        faults.begin(journal)
        save = torch.save

        def noted(thing: Any, target: Any, *args: Any, **named: Any) -> None:
            if not isinstance(target, io.BytesIO):
                name = _path_of(target)
                watch.saves(str(name))
                if name.is_relative_to(self._shared):
                    name = name.relative_to(self._shared)
                _note(self._notes / f"saved.{rank}", (journal.last + 1, name.as_posix()))
            save(thing, target, *args, **named)

        torch.save = noted
        job = Job(lambda snapshot: _note(self._notes / f"snapshots.{rank}", snapshot), lambda: journal.last)
        try:
            answer(rank, self._shared, job, scenario.steps, scenario.every)
        finally:
            torch.save = save
        _note(self._notes / f"final.{rank}", job.snapshot().weights)


class _Journal(Journal):
    """Knows how many steps were done by the last call of `reached`, -1 before the first; and notes a planned death."""

    last = -1
    before_step: Callable[[], None] | None = None

    def __init__(self, notes: Path, rank: int, attempt: int, plan: Sequence[Kill]) -> None:
        super().__init__(notes, rank, attempt, plan)
        self._dead, self._exchanged = notes / DEAD, notes / f"exchanged.{rank}"
        self._at = [kill.step for kill in plan if (kill.rank, kill.attempt, kill.saving) == (rank, attempt, False)]

    def reached(self, step: int) -> None:
        self.last = step
        if self.before_step:
            self.before_step()
        if any(step >= each for each in self._at):
            self._dead.touch()
        super().reached(step)

    def exchanged(self, path: str) -> None:
        """Note that a file of an earlier step was emptied, removed or renamed."""
        _note(self._exchanged, self.last)

    def died_exchanging(self, path: str) -> None:
        """Note the end that comes of it; the step before it is done. path: of the file that is left empty, if any."""
        os.write(self._file, f"{self._attempt} {self.last + 1}\n".encode())
        self._dead.write_text(path)

    def _save_half(self, thing: Any, target: Any, *args: Any, **named: Any) -> None:
        if isinstance(target, io.BytesIO):  # a tensor on its way to another rank is pickled so
            faults._true_save(thing, target, *args, **named)
        else:
            self._dead.write_text(str(_path_of(target)))
            super()._save_half(thing, target, *args, **named)


def _path_of(target: Any) -> Path:
    """Where `torch.save` writes: a path is given, or a file, which has its path as `name`."""
    return Path(target if isinstance(target, str | os.PathLike) else str(getattr(target, "name", target))).absolute()


def _note(path: Path, what: Any) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, pickle.dumps(what))
    finally:
        os.close(file)


def _notes(path: Path) -> Sequence[Any]:
    found = []
    if path.exists():
        with open(path, "rb") as file:
            while file.peek(1):
                found.append(pickle.load(file))
    return found
