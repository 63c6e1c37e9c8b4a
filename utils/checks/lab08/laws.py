"""The laws of lab 08, from theory: what a step of each strategy holds, sends and takes, as labs 02 to 06 build it."""

from __future__ import annotations

from functools import cache

from utils.checks.lab08.job import FP32, Job, Step
from utils.checks.shut import shut_to_answers
from utils.theory.memory import model_states
from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.step_time import Step as Simulated
from utils.theory.traffic import step_bytes


def group_of(job: Job, strategy: str) -> int | None:
    """The shard group: the node for HSDP, None for strategies that have none."""
    return job.per_node if strategy == "hsdp" else None


@shut_to_answers
def memory(job: Job, strategy: str) -> float:
    """Bytes of states on a rank, after backward."""
    return model_states(sum(job.parameters), job.ranks, strategy, group_of(job, strategy), recipe="fp32").total


@shut_to_answers
def sent(job: Job, strategy: str) -> tuple[float, float]:
    """Bytes that a rank sends in a step, and of a node's those that go to other nodes."""
    group = group_of(job, strategy)
    moved = step_bytes(sum(job.parameters), strategy, job.ranks, group, job.nodes, FP32)
    return moved.per_rank, moved.across


@shut_to_answers
@cache
def simulated(job: Job, strategy: str) -> Simulated:
    """The step: DDP overlaps, a bucket for each unit; the others wait for each collective where it is issued."""
    layers = [Layer(t, gradient_bytes=size) for t, size in zip(job.forward, job.sizes, strict=True)]
    inside, across = Link(job.inside, job.latency), Link(job.across, job.latency)
    one_by_one = [[number] for number in reversed(range(len(layers)))]
    options: dict = {
        "ddp": {"buckets": one_by_one},
        "zero1": {"buckets": one_by_one, "overlap": False},
        "fsdp": {"overlap": False},
        "hsdp": {"overlap": False, "shard_size": job.per_node},
    }[strategy]
    if job.nodes > 1 or strategy == "hsdp":
        options = {**options, "across": across, "nodes": job.nodes}
    return simulate_step(layers, job.ranks, inside, strategy, **options)


def seconds(job: Job, strategy: str) -> float:
    """Seconds of a step."""
    return simulated(job, strategy).seconds


def expected(job: Job, strategy: str) -> Step:
    """All that is predicted of a step."""
    step = simulated(job, strategy)
    spans = [(event.start, event.end) for event in step.timeline.events if event.kind == "communication"]
    return Step(memory(job, strategy), sent(job, strategy)[1], step.seconds, covered(spans))


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds in which at least one of the spans lies."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


#: Nodes of every shape: a square, one node, one rank a node, odd numbers, and a large cluster.
JOBS = (
    Job((262_144, 790_000, 790_000, 262_144), (0.001, 0.020, 0.020, 0.004), 2, 2, 25e6, 2e9, 0.001),
    Job((500_000, 1_200_000, 300_000), (0.010, 0.060, 0.015), 1, 4, 1e9, 4e8, 0.0005),
    Job((400_000,) * 6, (0.050,) * 6, 4, 1, 125e6, 1e9, 0.002),
    Job((100_003, 700_001, 650_007, 90_001), (0.002, 0.030, 0.045, 0.030), 3, 2, 50e6, 1e9, 0.004),
    Job((60_000_000,) * 12, (0.008,) * 12, 16, 8, 50e9, 450e9, 10e-6),
)
