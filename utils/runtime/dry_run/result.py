"""What a dry run found: bytes by kind over a step, and the collectives, beside what the laws predict.

Plain numbers that can be kept, compared and sent; they draw themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utils.theory.architecture import Architecture
from utils.theory.arguments import check_amount, check_share
from utils.theory.breakdown import Breakdown
from utils.theory.moments import Moment
from utils.theory.traffic.step_traffic import StepTraffic
from utils.theory.units import GB, plain


@dataclass(frozen=True)
class Event:
    """A part of the traced step.

    phase: "forward", "loss", "backward" or "optimizer step". unit: "root", "layers.3", "" for the whole model.
    part: "gather", "compute" (recomputation too), "free", "reduce", "update"; of the loss
    "forward" and "backward".
    largest: bytes by kind at the moment of the part at which their sum is largest. last: at its end.
    """

    phase: str
    unit: str
    part: str
    largest: Moment
    last: Moment

    @property
    def label(self) -> str:
        """ "backward, layers.78, compute", "optimizer step, update"."""
        return ", ".join(word for word in (self.phase, self.unit, self.part) if word)


@dataclass(frozen=True)
class Call:
    """One size of collective in the step. total_bytes: S, each time; ranks: of its group; times: how often."""

    kind: str
    total_bytes: int
    ranks: int
    times: int


@dataclass(frozen=True)
class Request:
    """What is to be traced; see `dry_run`. shard_size: of the ranks, all of them under fsdp."""

    model: Architecture
    name: str
    world_size: int
    strategy: str
    shard_size: int
    recompute: bool
    batch: int
    sequence: int
    mixed_precision: bool

    @property
    def title(self) -> str:
        """In one line."""
        groups = f", shard groups of {self.shard_size:,}" if self.strategy == "hsdp" else ""
        ranks = f"{self.world_size:,} rank{'s' if self.world_size > 1 else ''}"
        return (
            f"{self.name} under {self.strategy} on {ranks}{groups}, {self.batch:,} x {self.sequence:,} tokens, "
            f"{'full' if self.recompute else 'no'} recomputation{'' if self.mixed_precision else ', all in fp32'}"
        )


@dataclass(frozen=True)
class DryRun:
    """One step of one rank (rank 0, which holds most), traced on fake tensors: bytes, no numbers and no times.

    events: in order. calls: the collectives. step_counters: bytes of Adam's counters, a part of the optimizer's.
    predicted, traffic: what `theory.breakdown` and `theory.traffic` say, computed before the run.
    seconds, resident: what the dry run itself took, and the most bytes that its process had in memory (None where
    the system does not say).
    """

    request: Request
    events: tuple[Event, ...]
    calls: tuple[Call, ...]
    step_counters: int
    predicted: Breakdown
    traffic: StepTraffic
    seconds: float
    resident: int | None

    @property
    def peak(self) -> Event:
        """The first part of the step with the largest total."""
        return max(self.events, key=lambda event: event.largest.total)

    @property
    def total(self) -> float:
        """Bytes at the peak."""
        return self.peak.largest.total

    @property
    def states(self) -> Moment:
        """Bytes when the optimizer's step is about to end: shards, all gradients, the optimizer's state."""
        return next(event.last for event in self.events if event.phase == "optimizer step")

    @property
    def state_bytes(self) -> float:
        """Shards, their gradients, the optimizer's moments and step counters."""
        return self.states.weights + self.states.gradients + self.states.optimizer

    def most_of(self, kind: str) -> float:
        """The most bytes that one field of `theory.moments.Moment`, such as "gathered", holds at any event."""
        return max(getattr(moment, kind) for event in self.events for moment in (event.largest, event.last))

    def fits(self, memory: float, reserve: float = 0.0) -> bool:
        """Whether the traced peak fits `memory` bytes of a GPU, of which the share `reserve` is kept free."""
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
        check_share("reserve", reserve)
        return self.total <= (1 - reserve) * plain(memory)

    @property
    def table(self) -> tuple[Any, ...]:
        """Predicted, traced, difference: a `compare.Row` for each part and each collective."""
        from utils.runtime.dry_run.compare import rows

        return rows(self)

    def __repr__(self) -> str:
        return f"DryRun({self.request.title}: {self.total / GB:,.3f} GB, {self.peak.label})"

    def __str__(self) -> str:
        from utils.runtime.dry_run.compare import written

        return written(self)

    def picture(self, memory: float | None = None) -> Any:
        """The same as a picture, with the memory of a GPU in bytes as a line if it is given."""
        from utils.views.dry_run import dry_run_picture  # the views know matplotlib; a trace does not need it

        return dry_run_picture(self, memory)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)
