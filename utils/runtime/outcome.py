"""What ranks delivered, before it is opened: it can travel from one process of a job to the others."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from utils.runtime.errors import LaunchError
from utils.runtime.job import Account, Job
from utils.runtime.kernel_link import LinkBytes
from utils.runtime.run import Run, Timeline
from utils.runtime.supervisor import Supervisor


@dataclass(frozen=True)
class Outcome:
    """A run that went well. `values`, `printed` and `accounts` are by rank; a value is still pickled."""

    backend: str
    values: tuple[bytes, ...]
    printed: tuple[str, ...]
    accounts: tuple[Account, ...]
    seconds: float
    link_bytes: tuple[LinkBytes, ...] | None
    emulated: str
    true_reduce_scatter: bool

    @classmethod
    def of(cls, job: Job, values: list[bytes], printed: list[str], accounts: list[Account], by: Supervisor) -> Outcome:
        """What the supervisor of a run has gathered."""
        emulated = job.links.emulated if job.links else ""
        return cls(
            job.backend,
            tuple(values),
            tuple(printed),
            tuple(accounts),
            by.seconds,
            by.link_bytes,
            emulated,
            job.true_reduce_scatter,
        )

    def run(self) -> Run:
        """The same with its values opened. Raises LaunchError for one that cannot be opened outside its rank."""
        ring_bytes = tuple(sum(op.ring_bytes for op in account.ops) for account in self.accounts)
        wire = tuple(account.wire for account in self.accounts)
        # Counters that stand still while data moved belong to a system that only pretends to have them.
        counted = self.backend == "gloo" and None not in wire and (not any(ring_bytes) or any(w.sent for w in wire))
        return Run(
            world_size=len(self.values),
            backend=self.backend,
            values=tuple(_opened(rank, value) for rank, value in enumerate(self.values)),
            printed=self.printed,
            seconds=self.seconds,
            ring_bytes=ring_bytes,
            wire_bytes=wire if counted else None,
            link_bytes=self.link_bytes,
            timeline=Timeline(tuple(a.ops for a in self.accounts), self.emulated, self.true_reduce_scatter),
            emulated=self.emulated,
            true_reduce_scatter=self.true_reduce_scatter,
        )


def _opened(rank: int, value: bytes) -> Any:
    """A rank's result as an object of the notebook's."""
    try:
        return pickle.loads(value)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise LaunchError(
            f"what rank {rank} returned cannot be opened outside the rank ({type(error).__name__}: {reason}). "
            "Return plain data and tensors, of a model its state_dict."
        ) from None
