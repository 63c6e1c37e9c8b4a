"""A job that something else has started (`torch.distributed.run`, Slurm), whose ranks all run the same notebook.

Every rank of the job runs the notebook's cells. A `launch` is done together: each of the job's first n ranks starts one
fresh process beside itself, and these n make the default group, over the job's own network. Fresh ones, because a
function that hangs or aborts then ends with its process, and the notebook goes on; rank 0 watches them all as it would
watch processes of its own. What they gave, or how they failed, is the same in the notebooks of all ranks.

This file imports nothing, so that all can ask whether there is a job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class RealJob(Protocol):
    """One rank's part in the job."""

    def launch(self, ask: Any) -> Any:
        """The outcome of a `local_ranks.Ask` as an `outcome.Outcome`, the same on every rank."""

    def once(self, what: str, do: Callable[[], Any]) -> Any:
        """What `do` gives on rank 0, on every rank. `launch` inside it is done by all. `what` names it in messages."""


_current: RealJob | None = None


def current() -> RealJob | None:
    """The job that this process is a rank of, or None."""
    return _current


def enter(job: RealJob | None) -> None:
    """From now on this process is a rank of that job."""
    global _current
    _current = job
