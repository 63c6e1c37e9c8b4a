"""How long a training step takes, from sizes, rates and times known beforehand: never from the run it predicts.

`simulate_step` lets every layer and every collective happen on one rank's clock; all ranks do the same. `overlap_law`
says it in one line for DDP: forward + max(head + communication, backward + tail).

Sources. Buckets in reverse order, all-reduced during backward: Li et al., "PyTorch Distributed", VLDB 2020,
arXiv:2006.15704, section 3.2. Partitioned optimizer, gradients, parameters: Rajbhandari et al., "ZeRO", SC20,
arXiv:1910.02054, sections 5 and 7. Gather, free, gather again, and prefetch: Zhao et al., "PyTorch FSDP", VLDB 2023,
arXiv:2304.11277, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utils.theory.arguments import check_all, check_amount, check_divisor, check_whole
from utils.theory.buckets import ddp_buckets
from utils.theory.events import Timeline, Transfer, simulate
from utils.theory.gloo_messages import as_messages
from utils.theory.memory import sharing_ranks
from utils.theory.node_tasks import ACROSS, INSIDE, on_nodes
from utils.theory.sharing import Link
from utils.theory.step_options import check_options
from utils.theory.step_tasks import Job, tasks_of
from utils.theory.units import shown

_MOST_PASSES = 100_000  # of a layer, in one simulated step


@dataclass(frozen=True)
class Layer:
    """One layer, or one unit that FSDP wraps.

    forward_seconds, backward_seconds: of compute; backward is twice forward if left out, since it multiplies once for
        the gradient of its input and once for that of its weight.
    gradient_bytes: what is reduced. parameter_bytes: what is gathered, where parameters are sharded; as many as the
        gradients if left out.
    """

    forward_seconds: float
    backward_seconds: float | None = None
    gradient_bytes: float = 0.0
    parameter_bytes: float | None = None

    def __post_init__(self) -> None:
        if self.backward_seconds is None:
            check_amount("forward_seconds", self.forward_seconds, "a duration", "such as 0.010", least=0)
            object.__setattr__(self, "backward_seconds", 2 * self.forward_seconds)
        if self.parameter_bytes is None:
            object.__setattr__(self, "parameter_bytes", self.gradient_bytes)
        for name in ("forward_seconds", "backward_seconds"):
            check_amount(name, getattr(self, name), "a duration", "such as 0.010", least=0)
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("gradient_bytes", "parameter_bytes"):
            check_amount(name, getattr(self, name), "a size in bytes", "such as 4 * MiB", least=0)
            object.__setattr__(self, name, float(getattr(self, name)))


@dataclass(frozen=True)
class Step:
    """A simulated step on one rank. Draws itself in a notebook.

    seconds: from its begin to its end. compute: seconds of compute in it. communication: seconds that its collectives
    take one by one, each alone; by_link: the same, link by link. exposed: seconds in which the rank only waited for
    communication.
    """

    strategy: str
    compute: float
    by_link: Mapping[str, float]
    timeline: Timeline

    @property
    def communication(self) -> float:
        return math.fsum(self.by_link.values())

    @property
    def seconds(self) -> float:
        return self.timeline.seconds

    @property
    def exposed(self) -> float:
        return self.timeline.exposed

    def __str__(self) -> str:
        return (
            f"{self.strategy}: {1e3 * self.seconds:.1f} ms a step, of which compute {1e3 * self.compute:.1f} ms and "
            f"{1e3 * self.exposed:.1f} ms only waiting; communication alone {1e3 * self.communication:.1f} ms"
        )

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.timeline.picture(f"A step of {self.strategy}, simulated")._repr_mimebundle_(include, exclude)


def simulate_step(
    layers: Sequence[Layer],
    world_size: int,
    link: Link,
    strategy: str = "ddp",
    *,
    bucket_bytes: float | None = None,
    buckets: Sequence[Sequence[int]] | None = None,
    overlap: bool = True,
    prefetch: int | None = None,
    reshard: bool = True,
    shard_size: int | None = None,
    across: Link | None = None,
    micro_batches: int = 1,
    optimizer_seconds: float = 0.0,
    nodes: int = 1,
) -> Step:
    """One training step of `layers` (in forward order) on `world_size` ranks joined by `link`, by the ring's rules.

    Args:
        link: the link that the collectives go through; for hsdp the one inside a shard group. With `nodes` the one
            that a rank has to the others on its node.
        strategy: "ddp", "zero1", "zero2", "zero3", "fsdp" or "hsdp"; zero3 is fsdp without other names.
        bucket_bytes: ddp, zero1, zero2: a bucket closes when it reaches so much; see `layer_buckets`.
        buckets: instead of that, the layers' numbers of each bucket, in the order in which the buckets are sent.
        overlap: False lets compute and communication take turns: all collectives after backward (ddp, zero1, zero2), or
            the rank waiting for each (fsdp, hsdp).
        prefetch: zero3, fsdp, hsdp: how many units ahead a gather is issued, counted from the unit that is computed. 0:
            when the unit's turn has come. NCCL under FSDP behaves as with 1, which is taken if it is left out.
        reshard: zero3, fsdp, hsdp: whether parameters are freed after forward, and gathered again for backward.
        shard_size: hsdp: ranks of a shard group, a divisor of `world_size`. across: hsdp: the link between replicas.
            With `nodes`, of every strategy: the one that all ranks of a node share to the other nodes.
        micro_batches: forward and backward so many times a step. ddp and zero1 communicate in the last one only, the
            others in each.
        optimizer_seconds: compute at the end, when all gradients are there.
        nodes: over how many the ranks are spread, a divisor of `world_size`, neighbours together; 1: all links alike.
            With more, a ring lasts as long as its slowest edge: see `node_tasks`.

    zero1 and zero2 gather the new parameters after the optimizer.
    Raises ValueError, in one sentence, for a value out of range or one that the strategy does not have.
    """
    layers = _checked_layers(layers)
    _check_group(world_size, strategy, shard_size, link, across, nodes)
    check_options(strategy, bucket_bytes, buckets, overlap, prefetch, reshard)
    prefetch = 1 if prefetch is None else prefetch
    check_whole("micro_batches", micro_batches, "how many micro-batches a step has", most=_MOST_PASSES // len(layers))
    check_amount("optimizer_seconds", optimizer_seconds, "a duration", "such as 0.010", least=0)
    job = Job(
        layers=layers,
        shard_size=int(world_size if shard_size is None else shard_size),
        replicas=1 if shard_size is None else int(world_size) // int(shard_size),
        buckets=_checked_buckets(buckets, layers) if buckets is not None else layer_buckets(layers, bucket_bytes),
        overlap=overlap,
        prefetch=int(prefetch),
        reshard=reshard,
        micro_batches=int(micro_batches),
        optimizer_seconds=float(optimizer_seconds),
    )
    tasks = tasks_of(strategy, job)
    links = {INSIDE: link} if across is None else {INSIDE: link, ACROSS: across}
    if nodes > 1:
        tasks = on_nodes(tasks, links, int(world_size), job.shard_size, int(nodes))
    timeline = simulate(*as_messages(tasks, links, int(world_size)))
    compute = math.fsum(task.seconds for task in tasks if not isinstance(task, Transfer))
    alone = [
        (task.link, links[task.link].alone(task.bytes, task.steps)) for task in tasks if isinstance(task, Transfer)
    ]
    by_link = {name: math.fsum(seconds for link, seconds in alone if link == name) for name in links}
    return Step(strategy, compute, by_link, timeline)


def layer_buckets(layers: Sequence[Layer], bucket_bytes: float | None = None) -> tuple[tuple[int, ...], ...]:
    """Which layers share a bucket: numbers of layers, the last layer first, since its gradients are there first.

    bucket_bytes: a bucket closes when it reaches so much, so it may be larger. Left out: PyTorch's 1 MiB for the first
    bucket, 25 MiB for the others. The rule is that of `buckets.ddp_buckets`, but layers go whole, where DDP goes tensor
    by tensor. Raises ValueError for a cap that is not above 0.
    """
    if bucket_bytes is not None:
        check_amount("bucket_bytes", bucket_bytes, "the size at which a bucket closes", "such as 25 * MiB")
        bucket_bytes = math.ceil(bucket_bytes)
    layers = check_all("layers", layers, Layer, "in forward order")
    numbers = [n for n in reversed(range(len(layers))) if layers[n].gradient_bytes]
    sizes = [max(1, round(layers[n].gradient_bytes)) for n in numbers]
    return tuple(tuple(numbers[i] for i in bucket) for bucket in ddp_buckets(sizes, bucket_cap_bytes=bucket_bytes))


def overlap_law(forward: float, backward: float, communication: float, head: float, tail: float) -> float:
    """Seconds of a DDP step: forward + max(head + communication, backward + tail). All arguments are seconds.

    head: of backward, until the first bucket is full; no more than backward. communication: of all buckets, one after
    the other. tail: of the last bucket's communication; no more than communication.

    Buckets are sent one after the other, and the last one is full when backward ends (the first layer has gradients).
    Then the law never says more than the simulation, and the same if sending, once begun, never pauses, or if the last
    bucket finds the link free: so with equal layers in equal buckets. Else it is short by at most
    min(backward - head, communication - tail), and never by more than half of the step.
    Raises ValueError for a time below 0, a head or tail that is too long.
    """
    for name, seconds in (("forward", forward), ("backward", backward), ("communication", communication)):
        check_amount(name, seconds, "a duration", "such as 0.160", least=0)
    for name, seconds, whole, of in (
        ("head", head, backward, "backward"),
        ("tail", tail, communication, "communication"),
    ):
        check_amount(name, seconds, "a duration", "such as 0.020", least=0)
        if seconds > whole * (1 + 1e-9):
            raise ValueError(f"{name} is {seconds!r}, but it is a part of {of}, {whole!r} s: give at most that")
    return float(forward) + max(float(head) + float(communication), float(backward) + float(tail))


@dataclass(frozen=True)
class LawTerms:
    """The five times in `overlap_law`, in seconds."""

    forward: float
    backward: float
    communication: float
    head: float
    tail: float

    @property
    def seconds(self) -> float:
        """What the law says."""
        return overlap_law(self.forward, self.backward, self.communication, self.head, self.tail)

    @property
    def short_by(self) -> float:
        """Seconds by which the step can at most be longer than the law says."""
        return min(self.backward - self.head, self.communication - self.tail)


def law_terms(
    layers: Sequence[Layer],
    world_size: int,
    link: Link,
    *,
    bucket_bytes: float | None = None,
    buckets: Sequence[Sequence[int]] | None = None,
) -> LawTerms:
    """The terms of `overlap_law` for a DDP step; arguments and errors as for `simulate_step`."""
    layers = _checked_layers(layers)
    _check_group(world_size, "ddp", None, link, None)
    chosen = _checked_buckets(buckets, layers) if buckets is not None else layer_buckets(layers, bucket_bytes)
    forward = sum(layer.forward_seconds for layer in layers)
    backward = sum(layer.backward_seconds for layer in layers)
    job = Job(layers, int(world_size), buckets=chosen)
    alone = [link.alone(*job.wire("all_reduce", job.gradients(bucket))) for bucket in chosen]
    head = sum(layer.backward_seconds for layer in layers[min(chosen[0]) :]) if chosen else backward
    return LawTerms(forward, backward, sum(alone), min(head, backward), alone[-1] if alone else 0.0)


def _checked_layers(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    if not isinstance(layers, Sequence):
        raise ValueError(f"layers is {shown(layers)}; give a list of Layer, in forward order")
    layers = tuple(layers)
    for number, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            raise ValueError(
                f"layer {number} is {shown(layer)}; give a Layer, such as Layer(0.010, gradient_bytes=4 * MiB)"
            )
    if not layers:
        raise ValueError("layers is empty; give at least one Layer")
    return layers


def _check_group(
    world_size: int, strategy: str, shard_size: int | None, link: Link, across: Link | None, nodes: int = 1
) -> None:
    sharing_ranks(world_size, strategy, shard_size)
    check_divisor("nodes", nodes, world_size, "world_size", "nodes hold equally many ranks")
    if not isinstance(link, Link):
        raise ValueError(f"link is {shown(link)}; give a Link, such as Link(125 * MB) for 1 Gbit/s")
    if nodes > 1 and not isinstance(across, Link):
        raise ValueError(f"across is {shown(across)}; {nodes} nodes need a link between them: give a Link")
    if strategy != "hsdp" and nodes == 1:
        if across is not None:
            raise ValueError(
                f"across is {shown(across)}, but {strategy} has no shard groups: leave it out, or choose 'hsdp'"
            )
        return
    if not isinstance(across, Link):
        raise ValueError(f"across is {shown(across)}; hsdp needs the link between its replicas: give a Link")


def _checked_buckets(buckets: Sequence[Sequence[int]], layers: Sequence[Layer]) -> tuple[tuple[int, ...], ...]:
    if not isinstance(buckets, Sequence) or not all(isinstance(bucket, Sequence) for bucket in buckets):
        raise ValueError(f"buckets is {shown(buckets)}; give a list of lists of layers' numbers, such as [[1], [0]]")
    chosen = tuple(tuple(bucket) for bucket in buckets)
    for number in (number for bucket in chosen for number in bucket):
        check_whole("a layer's number in buckets", number, f"one of 0 to {len(layers) - 1}", least=0)
    chosen = tuple(tuple(map(int, bucket)) for bucket in chosen)
    numbers = sorted(number for bucket in chosen for number in bucket)
    needed = [number for number, layer in enumerate(layers) if layer.gradient_bytes]
    if len(set(numbers)) < len(numbers) or not set(needed) <= set(numbers) <= set(range(len(layers))) or () in chosen:
        raise ValueError(
            f"buckets is {shown(chosen)}; give every layer with gradients, 0 to {len(layers) - 1}, in one bucket, and "
            "no empty bucket"
        )
    return chosen
