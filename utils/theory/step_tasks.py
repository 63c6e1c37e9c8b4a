"""The computations and collectives of one step, and what each comes after, for `step_time.simulate_step`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utils.theory.events import Compute, Task, Transfer
from utils.theory.sharing import ring_steps
from utils.theory.traffic import collective_bytes


@dataclass(frozen=True)
class Job:
    """A step's settings, checked; as for `step_time.simulate_step`. layers: of `step_time.Layer`.

    shard_size: ranks of the group that collectives on `link` have. replicas: how many such groups there are.
    """

    layers: Sequence[Any]
    shard_size: int
    replicas: int = 1
    buckets: Sequence[Sequence[int]] = ()
    overlap: bool = True
    prefetch: int = 1
    reshard: bool = True
    micro_batches: int = 1
    optimizer_seconds: float = 0.0

    def wire(self, kind: str, total_bytes: float, ranks: int | None = None) -> tuple[float, int]:
        """(bytes that a rank sends, steps that pay the latency) of a collective; ranks: `shard_size` if left out."""
        ranks = self.shard_size if ranks is None else ranks
        return collective_bytes(kind, total_bytes, ranks), ring_steps(kind, ranks)

    def gradients(self, bucket: Sequence[int]) -> float:
        return sum(self.layers[number].gradient_bytes for number in bucket)

    def parameters(self, bucket: Sequence[int]) -> float:
        return sum(self.layers[number].parameter_bytes for number in bucket)


def tasks_of(strategy: str, job: Job) -> list[Task]:
    """In the order in which a rank issues them; strategy: one of `memory.STRATEGIES`."""
    return _bucketed(strategy, job) if strategy in ("ddp", "zero1", "zero2") else _gathered(job)


def _name(what: str, number: int, micro_batch: int, job: Job) -> str:
    """ "forward 3", and with several micro-batches "forward 3 of micro-batch 0"."""
    return f"{what} {number}" if job.micro_batches == 1 else f"{what} {number} of micro-batch {micro_batch}"


def _bucketed(strategy: str, job: Job) -> list[Task]:
    """Whole parameters on every rank: gradients are reduced bucket by bucket, while backward goes on."""
    kind = "all_reduce" if strategy == "ddp" else "reduce_scatter"
    wires = [job.wire(kind, job.gradients(bucket)) for bucket in job.buckets]
    # By the layer after whose backward they are sent: then the bucket is full, and so are those before it.
    sent_after: dict[int, list[int]] = {}
    lowest = len(job.layers) if job.overlap else 0
    for number, bucket in enumerate(job.buckets):
        lowest = min(lowest, *bucket)
        sent_after.setdefault(lowest, []).append(number)
    tasks: list[Task] = []
    reduced: list[str] = []
    for m in range(job.micro_batches):
        # Without overlap the next micro-batch waits for the collectives of the one before.
        begin = () if job.overlap else tuple(reduced)
        for i, layer in enumerate(job.layers):
            tasks.append(Compute(_name("forward", i, m, job), layer.forward_seconds, begin if i == 0 else ()))
        sends = strategy == "zero2" or m == job.micro_batches - 1
        for i in reversed(range(len(job.layers))):
            done = _name("backward", i, m, job)
            tasks.append(Compute(done, job.layers[i].backward_seconds))
            for number in sent_after.get(i, ()) if sends else ():
                size, steps = wires[number]
                reduced.append(_name(kind, number, m, job))
                tasks.append(Transfer(reduced[-1], size, (done,), steps=steps))
    if strategy == "ddp" and not job.optimizer_seconds:
        return tasks
    tasks.append(Compute("optimizer", job.optimizer_seconds, tuple(reduced)))
    if strategy != "ddp":
        for number, bucket in enumerate(job.buckets):
            size, steps = job.wire("all_gather", job.parameters(bucket))
            tasks.append(Transfer(f"all_gather {number}", size, ("optimizer",), steps=steps))
    return tasks


def _gathered(job: Job) -> list[Task]:
    """Sharded parameters: a unit is gathered for its forward and again for its backward, then its gradients reduced."""
    tasks: list[Task] = []
    reduced: list[str] = []
    forward, backward = range(len(job.layers)), range(len(job.layers) - 1, -1, -1)
    before: tuple[str, ...] = ()  # what the next pass comes after
    for m in range(job.micro_batches):
        _pass(tasks, "forward", forward, m, job, before, gathers=True)
        before = (_name("forward", forward[-1], m, job),)
        reduced += _pass(tasks, "backward", backward, m, job, before, gathers=job.reshard)
        before = (_name("backward", 0, m, job),) if job.overlap else (reduced[-1],)
    if job.optimizer_seconds:
        tasks.append(Compute("optimizer", job.optimizer_seconds, tuple(reduced)))
    return tasks


def _pass(
    tasks: list[Task], which: str, units: Sequence[int], m: int, job: Job, before: tuple[str, ...], gathers: bool
) -> list[str]:
    """Add a forward or backward pass over `units`; the names of the collectives that end a unit's gradients.

    With prefetch p the gather of a unit is issued when the unit p places before it begins, that is when the one before
    that has ended and the gather of that one is there; the first p when the pass begins.
    """
    ended: list[tuple[str, ...]] = [before]  # ended[k]: what is done when k units have had their turn
    gather_of: list[str] = []
    reduced: list[str] = []
    for place, i in enumerate(units):
        needs = ended[-1] if place == 0 or not job.overlap else ()
        if gathers:
            gather = _name(f"all_gather for {which}", i, m, job)
            size, steps = job.wire("all_gather", job.layers[i].parameter_bytes)
            ahead = job.prefetch if job.overlap else 0
            at = max(0, place - ahead)
            issued = (*ended[at], gather_of[at]) if at < place else ended[at]
            tasks.append(Transfer(gather, size, issued, steps=steps))
            gather_of.append(gather)
            needs = (*needs, gather)
        name = _name(which, i, m, job)
        tasks.append(Compute(name, getattr(job.layers[i], f"{which}_seconds"), needs))
        ended.append((name,))
        if which == "backward":
            reduced.append(_reduce(tasks, i, m, job, name))
            if not job.overlap:
                ended[-1] = (reduced[-1],)
    return reduced


def _reduce(tasks: list[Task], i: int, m: int, job: Job, done: str) -> str:
    """Add the reduce-scatter of a unit, and the all-reduce between replicas of what is left; the last one's name."""
    size, steps = job.wire("reduce_scatter", job.layers[i].gradient_bytes)
    name = _name("reduce_scatter", i, m, job)
    tasks.append(Transfer(name, size, (done,), steps=steps))
    if job.replicas == 1:
        return name
    size, steps = job.wire("all_reduce", job.layers[i].gradient_bytes / job.shard_size, job.replicas)
    between = _name("all_reduce", i, m, job)
    tasks.append(Transfer(between, size, (name,), link="across", steps=steps))
    return between
