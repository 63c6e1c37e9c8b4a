"""`plan`: every data-parallel strategy for a job, whether it fits, how it would run, and which to take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from utils.theory.architecture import Architecture
from utils.theory.arguments import check_choice, is_whole
from utils.theory.planner import advice
from utils.theory.planner.ask import Ask, asked
from utils.theory.planner.held import held, most_tokens
from utils.theory.scale.hardware import Gpu
from utils.theory.scale.job import Job
from utils.theory.scale.step import Prediction, predict
from utils.theory.units import shown

#: All with gradients of 2 bytes on the wire, so that strategies differ by what they move and not by its precision.
SOFTWARE = {"ddp": "FSDP2, bf16", "fsdp": "FSDP2, bf16", "hsdp": "FSDP2, bf16"}
SOFTWARE |= {"zero1": "ZeRO, compiled", "zero2": "ZeRO, compiled"}
#: Of equally fast ones (within `CLOSE`) the first of these is taken: what asks least of whoever runs it.
SIMPLEST = ("ddp", "fsdp", "zero1", "zero2", "hsdp")
CLOSE = 0.03
MEMORY = "memory"


@dataclass(frozen=True)
class Row:
    """One strategy, with or without recomputation.

    strategy: "fsdp" is ZeRO-3 too. shard_size: hsdp's groups. again: "none" or "full" recomputation. micro_batch: the
    largest that fits and divides a GPU's sequences; 1 where not even that fits. memory: bytes of a GPU with it.
    """

    ask: Ask
    strategy: str
    shard_size: int | None
    again: str
    micro_batch: int
    memory: float

    @property
    def shards(self) -> int:
        """GPUs that share the states."""
        return self.shard_size or self.ask.gpus

    @property
    def fits(self) -> bool:
        return self.memory <= self.ask.budget

    @property
    def over(self) -> float:
        """Bytes that are missing; negative: that are free, of what may be used."""
        return self.memory - self.ask.budget

    @property
    def accumulation(self) -> int:
        """Micro-batches of a step."""
        return self.ask.per_gpu // self.micro_batch

    @property
    def job(self) -> Job:
        ask = self.ask
        return Job(
            ask.model,
            ask.gpus,
            ask.sequence,
            self.micro_batch,
            self.accumulation,
            self.strategy,
            self.shard_size,
            again=self.again,
            precision=ask.precision,
            software=SOFTWARE[self.strategy],
        )

    @cached_property
    def prediction(self) -> Prediction:
        """The step; of a strategy that does not fit, what it would take if it did."""
        return predict(self.job, self.ask.machine)

    @property
    def seconds(self) -> float:
        return self.prediction.seconds

    @property
    def binds(self) -> str:
        """ "memory" if it does not fit, else the link that is waited for, or "compute"."""
        return self.prediction.binds if self.fits else MEMORY

    @property
    def title(self) -> str:
        """As a person says it: "HSDP in groups of 8, full recomputation"."""
        names = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "fsdp": "FSDP", "hsdp": "HSDP"}
        group = f" in groups of {self.shard_size}" if self.shard_size else ""
        return names[self.strategy] + group + (", full recomputation" if self.again == "full" else "")


@dataclass(frozen=True)
class Plan:
    """All rows for one question. Draws itself as a table."""

    ask: Ask
    rows: tuple[Row, ...]

    @cached_property
    def best(self) -> Row | None:
        """Of those that fit and are at most 3% slower than the fastest, the simplest; None if none fits."""
        fitting = [row for row in self.rows if row.fits]
        if not fitting:
            return None
        least = min(row.seconds for row in fitting)
        close = [row for row in fitting if row.seconds <= (1 + CLOSE) * least]
        return min(close, key=lambda row: (SIMPLEST.index(row.strategy), row.again != "none", row.seconds))

    @cached_property
    def fastest(self) -> Row | None:
        """The fastest that fits."""
        return min((row for row in self.rows if row.fits), key=lambda row: row.seconds, default=None)

    def row(self, strategy: str, again: str | None = None, shard_size: int | None = None) -> Row:
        """The row of a strategy; of several that are meant the fastest that fits, or that which lacks least."""
        strategy = "fsdp" if strategy == "zero3" else strategy
        check_choice("strategy", strategy, dict.fromkeys(row.strategy for row in self.rows))
        if again is not None:
            check_choice("again", again, ("none", "full"))
        if shard_size is not None:
            sizes = dict.fromkeys(row.shard_size for row in self.rows if row.strategy == strategy)
            if not is_whole(shard_size) or shard_size not in sizes:
                given = ", ".join(str(size) for size in sizes if size)
                given = f"give one of {given}" if given else f"{strategy} has no groups: leave it out"
                raise ValueError(f"shard_size is {shown(shard_size)}, which is in no row of this plan: {given}")
        found = [
            row
            for row in self.rows
            if row.strategy == strategy and again in (None, row.again) and shard_size in (None, row.shard_size)
        ]
        return min(found, key=lambda row: (not row.fits, row.seconds if row.fits else row.memory))

    @cached_property
    def recommendation(self) -> str:
        """One sentence with its reason."""
        return advice.sentence(self)

    @cached_property
    def would_fit(self) -> tuple[str, ...]:
        """What would fit where nothing does; empty if something fits."""
        return () if self.best else advice.what_would(self.ask)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain numbers and texts."""
        return advice.as_json(self)

    def __repr__(self) -> str:
        return advice.text(self)

    def _repr_html_(self) -> str:
        return advice.html(self)


def plan(
    model: str | Architecture,
    gpus: int,
    gpus_per_node: int | None = None,
    gpu: str | Gpu = "H100 80GB",
    memory: float | None = None,
    network: float = 3200,
    inside: float | None = None,
    sequence: int = 4096,
    global_batch: int | None = None,
    reserve: float = 0.1,
    precision: str = "bf16",
) -> Plan:
    """Every strategy for training `model` on `gpus` GPUs with `global_batch` sequences a step.

    Args:
        model: a preset's name or an `Architecture`.
        gpus, gpus_per_node: in all, and of a node (8 if left out).
        gpu: a name in `scale.GPUS`; memory: bytes of one, the type's if left out; reserve: the share kept free.
        network: Gbit/s of a node to the others. inside: GB/s one way of a GPU on its node; its NVLink if left out.
        sequence: tokens. global_batch: sequences of a step; one for each GPU if left out.
        precision: "bf16" or "fp8", of the layers' matrices.

    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    return plan_of(
        asked(model, gpus, gpus_per_node, gpu, memory, network, inside, sequence, global_batch, reserve, precision)
    )


def plan_of(ask: Ask) -> Plan:
    """The plan for a question that was checked."""
    strategies: list[tuple[str, int | None]] = [("ddp", None)]
    if ask.gpus > 1:
        strategies += [("zero1", None), ("zero2", None), ("fsdp", None)]
        strategies += [("hsdp", size) for size in group_sizes(ask)]
    return Plan(ask, tuple(_row(ask, *each, again) for each in strategies for again in ("none", "full")))


def group_sizes(ask: Ask) -> list[int]:
    """Shard groups worth a look: whole nodes that divide all of them, the node, and its halves down to 2."""
    node = ask.gpus_per_node
    inside = [size for size in range(2, node + 1) if node % size == 0 and size < ask.gpus]
    across = [node * n for n in range(2, ask.nodes) if ask.nodes % n == 0]
    return [size for size in inside + across if size < ask.gpus]


def _row(ask: Ask, strategy: str, shard_size: int | None, again: str) -> Row:
    shards = shard_size or ask.gpus
    most = most_tokens(ask.model, strategy, shards, again, ask.budget) // ask.sequence
    micro_batch = largest_divisor(ask.per_gpu, most)
    memory = held(ask.model, strategy, shards, again, micro_batch * ask.sequence)
    return Row(ask, strategy, shard_size, again, micro_batch, memory)


def largest_divisor(whole: int, most: int) -> int:
    """The largest divisor of `whole` that is at most `most`; 1 at least."""
    if most >= whole:
        return whole
    best = 1
    for small in range(1, int(whole**0.5) + 1):
        if whole % small == 0:
            best = max([best, *(each for each in (small, whole // small) if each <= most)])
    return best
