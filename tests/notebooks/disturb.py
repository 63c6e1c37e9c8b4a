"""Falsifies one kind of measurement at its source by 10%. Called in a notebook's kernel, before its first cell.

A rank imports this module, so it imports little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from utils.runtime import processes, supervisor, wire
from utils.runtime import recorder as records

FACTOR = 1.1


def counter() -> None:
    """The kernel's TCP counters count 10% too much."""
    processes.RANK_SETUP.append(_counter_in_rank)


def recorder() -> None:
    """The recorder notes 10% too many bytes for each operation."""
    processes.RANK_SETUP.append(_recorder_in_rank)


def ledger() -> None:
    """A ledger counts 10% too many bytes for each storage, in the ranks and in the notebook."""
    processes.RANK_SETUP.append(_ledger_here)
    _ledger_here(rank=0)


def clock() -> None:
    """Clocks run 10% too fast: the notebook's, the ranks', the recorder's and the one that times a run."""
    results = supervisor.Supervisor.results

    def slower(self: supervisor.Supervisor) -> tuple:
        found = results(self)
        self.seconds *= FACTOR
        return found

    supervisor.Supervisor.results = slower
    processes.RANK_SETUP.append(_clock_in_rank)
    _hurry_clocks()


def nothing() -> None:
    """No falsification, to see that none of the others' effects comes from running the notebook in this way."""


def _counter_in_rank(rank: int) -> None:
    read = wire.read_counters

    def disturbed(*left_out: int | None) -> dict[str, wire.WireBytes] | None:
        counters = read(*left_out)
        return counters and {
            name: wire.WireBytes(round(FACTOR * each.sent), round(FACTOR * each.received))
            for name, each in counters.items()
        }

    wire.read_counters = disturbed


def _ledger_here(rank: int) -> None:
    from utils.runtime import ledger as counting

    true = counting.storage_bytes
    counting.storage_bytes = lambda storage: round(FACTOR * true(storage))


def _recorder_in_rank(rank: int) -> None:
    _change_records(lambda op: replace(op, bytes=round(FACTOR * op.bytes), ring_bytes=FACTOR * op.ring_bytes))


def _clock_in_rank(rank: int) -> None:
    def later(op: records.Op) -> records.Op:
        completed = None if op.completed_at is None else FACTOR * op.completed_at
        return replace(op, issued_at=FACTOR * op.issued_at, completed_at=completed)

    _change_records(later)
    _hurry_clocks()


def _change_records(change: Callable[[records.Op], records.Op]) -> None:
    closed = records.OpenOp.closed
    records.OpenOp.closed = lambda op, start: change(closed(op, start))


def _hurry_clocks() -> None:
    """For code that reads a clock itself. The recorder and the supervisor hold on to the true one."""
    for name in ("perf_counter", "monotonic", "time"):
        true = getattr(time, name)
        setattr(time, name, lambda true=true: FACTOR * true())
