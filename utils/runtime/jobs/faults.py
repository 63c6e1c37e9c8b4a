"""What happens to a rank on purpose: it keeps a journal of its steps, and is killed where the plan says.

def train(rank, folder):
    for step in range(start, STEPS):
        reached(step)          # `step` steps are done
        ...
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from utils.theory.arguments import check_whole, check_yes_or_no


@dataclass(frozen=True)
class Kill:
    """SIGKILL for one rank: nothing in it gets a chance to tidy up, as when a machine loses its power.

    step: the rank dies when it calls `reached(step)`, or a later one. attempt: in which attempt, 0 for the first.
    saving: it dies in the next `torch.save` instead, when half of the bytes are in the file.
    Raises ValueError, in one sentence, for a value out of range.
    """

    rank: int
    step: int
    attempt: int = 0
    saving: bool = False

    def __post_init__(self) -> None:
        check_whole("rank", self.rank, "the rank that is killed", least=0)
        check_whole("step", self.step, "how many steps are done when it dies", least=0)
        check_whole("attempt", self.attempt, "0 for the first attempt, 1 after one restart", least=0)
        check_yes_or_no("saving", self.saving)


class Journal:
    """In a rank of a restarted job: writes down how far it has come, and carries the plan out."""

    def __init__(self, folder: Path, rank: int, attempt: int, plan: Sequence[Kill]) -> None:
        self._file = os.open(journal_file(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._attempt, self._done = attempt, 0
        self._mine = [kill for kill in plan if kill.rank == rank and kill.attempt == attempt]

    def reached(self, step: int) -> None:
        """Note that `step` steps are done; die if it is time."""
        self._done = step
        os.write(self._file, f"{self._attempt} {step}\n".encode())  # the kernel has it, whoever dies
        for kill in self._mine:
            if step >= kill.step:
                if not kill.saving:
                    os.kill(os.getpid(), signal.SIGKILL)
                torch.save = self._save_half

    def _save_half(self, thing: Any, target: Any, *args: Any, **named: Any) -> None:
        """In place of `torch.save`: half of the bytes, then the end."""
        if isinstance(target, io.BytesIO):  # no file: an object on its way to another rank
            return _true_save(thing, target, *args, **named)
        # What is saved after a step has that step in it: it is done, and will be done again.
        os.write(self._file, f"{self._attempt} {self._done + 1}\n".encode())
        whole = io.BytesIO()
        _true_save(thing, whole, *args, **named)
        half = whole.getvalue()[: len(whole.getvalue()) // 2]
        if hasattr(target, "write"):
            target.write(half)
            target.flush()
        else:
            Path(target).write_bytes(half)
        os.kill(os.getpid(), signal.SIGKILL)


_true_save = torch.save
_journal: Journal | None = None


def begin(journal: Journal) -> None:
    """From here on this process keeps that journal."""
    global _journal
    _journal = journal


def reached(step: int) -> None:
    """`step` steps are done. Outside a job of `run_with_restarts` nothing happens.

    Raises ValueError for what is no whole number of at least 0.
    """
    check_whole("step", step, "how many steps are done", least=0)
    if _journal is not None:
        _journal.reached(int(step))


def journal_file(folder: Path, rank: int) -> Path:
    return folder / f"journal.{rank}"


def read_journal(folder: Path, rank: int) -> tuple[tuple[int, int], ...]:
    """(attempt, steps done) of every call of `reached`, in order; empty if the rank never came so far."""
    try:
        lines = journal_file(folder, rank).read_text().split("\n")[:-1]
    except FileNotFoundError:
        return ()
    return tuple((int(attempt), int(step)) for attempt, step in map(str.split, lines))
