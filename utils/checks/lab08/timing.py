"""08.predict_seconds: a step's time, from sizes, rates and what overlaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from utils.checks.lab08.job import STRATEGIES, Job
from utils.checks.lab08.laws import JOBS, seconds
from utils.checks.lab08.named import apart, near, plain_number, raise_named
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to, shut_to_answers
from utils.checks.verdict import Mistake
from utils.theory.units import format_seconds

Rule = Callable[[Job, str], float]


def ring(job: Job, passes: int, size: float, ranks: int, crosses: bool) -> float:
    """Seconds of a collective among so many ranks: `passes` times its bytes and the steps of its ring."""
    rate = job.across if crosses else job.inside
    return passes * ((ranks - 1) / ranks * size / rate + (ranks - 1) * job.latency)


def among_all(job: Job, passes: int, size: float) -> float:
    """A ring through all ranks is as fast as its slowest edge: the link between nodes, if there is one."""
    return ring(job, passes, size, job.ranks, job.nodes > 1)


def compute(job: Job) -> float:
    """Forward and backward of all units."""
    return 3 * sum(job.forward)


@shut_to_answers
def overlapped(
    job: Job, passes: int = 2, order: int = -1, backward: int = 2, takes: Callable[[Job, int, float], float] = among_all
) -> float:
    """Buckets that travel during backward, one after the other; a unit's backward is so many forwards long."""
    ready = done = sum(job.forward)
    for size, t in list(zip(job.sizes, job.forward, strict=True))[::order]:
        ready += backward * t
        done = max(done, ready) + takes(job, passes, size)
    return done


def _side_by_side(job: Job) -> float:
    """DDP as if each bucket had a link of its own."""
    ready = ended = sum(job.forward)
    for size, t in reversed(list(zip(job.sizes, job.forward, strict=True))):
        ready += 2 * t
        ended = max(ended, ready + among_all(job, 2, size))
    return ended


@shut_to_answers
def waited(job: Job, passes: int) -> float:
    """Compute, and collectives among all ranks for which everybody waits."""
    return compute(job) + sum(among_all(job, passes, size) for size in job.sizes)


@shut_to_answers
def two_levels(job: Job, *, inside: int = 3, across: float = 1.0, steps: int = 2) -> float:
    """HSDP: gathers inside a node; across so much of what a node sends."""
    nodes = job.nodes
    return compute(job) + sum(
        ring(job, inside, size, job.per_node, False)
        + across * 2 * (nodes - 1) / nodes * size / job.across
        + steps * (nodes - 1) * job.latency
        for size in job.sizes
    )


def _joined(job: Job) -> Job:
    """The same numbers and seconds in a single unit."""
    return replace(job, parameters=(sum(job.parameters),), forward=(sum(job.forward),))


def _latency_once(job: Job, passes: int, size: float) -> float:
    """A collective with the latencies of one pass, however many it has."""
    return ring(job, passes, size, job.ranks, job.nodes > 1) - (passes - 1) * (job.ranks - 1) * job.latency


def _every_latency_once(job: Job, s: str) -> float:
    """All passes of a unit's collectives together with the latencies of one."""
    if s == "hsdp":
        extra = 2 * (job.per_node - 1) * job.latency
        return two_levels(job, steps=1) - extra * len(job.sizes)
    if s == "ddp":
        return overlapped(job, takes=_latency_once)
    return compute(job) + sum(_latency_once(job, 3 if s == "fsdp" else 2, size) for size in job.sizes)


def _with(**rules: Callable[[Job], float]) -> Rule:
    """The law, but for these strategies."""
    return lambda job, s: rules[s](job) if s in rules else seconds(job, s)


def _on(change: Callable[[Job], Job]) -> Rule:
    """The law of a job that is changed."""
    return lambda job, s: seconds(change(job), s)


def _whole_model_first(job: Job) -> float:
    """DDP as max(backward, communication), as if the first bucket were ready at once."""
    return sum(job.forward) + max(2 * sum(job.forward), sum(among_all(job, 2, size) for size in job.sizes))


# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        _with(ddp=lambda job: compute(job) + among_all(job, 2, sum(job.sizes))),
        "DDP is counted as if it had one bucket, sent after backward: each unit is a bucket of its own, sent once its "
        "backward is over.",
    ),
    (
        _with(ddp=_side_by_side),
        "DDP's buckets are counted as travelling side by side: the link takes them one after the other.",
    ),
    (
        lambda job, s: seconds(_joined(job), s),
        "all units are counted as one collective: each has its own, with the latency of each step of its ring.",
    ),
    (
        lambda job, s: seconds(job if s == "ddp" else _joined(job), s),
        "under ZeRO-1, FSDP and HSDP all sizes are in one collective: each unit has its own, with its latencies.",
    ),
    (
        _with(ddp=lambda job: overlapped(job, takes=_latency_once), hsdp=lambda job: two_levels(job, steps=1)),
        "the latency of an all-reduce is counted for one pass: it has two, of n - 1 steps each.",
    ),
    (
        _every_latency_once,
        "the latency is counted once for several passes: every pass of a ring has n - 1 steps.",
    ),
    (
        _with(ddp=lambda job: waited(job, 2)),
        "DDP is counted as if its buckets waited for the end of backward; `overlap` sends each as soon as it is full.",
    ),
    (
        _with(ddp=lambda job: waited(job, 2), zero1=overlapped),
        "DDP and ZeRO-1 are exchanged: lab 02's `overlap` sends during backward, lab 04's `zero1` in `step()`.",
    ),
    (
        _with(zero1=overlapped),
        "ZeRO-1 is counted as if it overlapped: lab 04's `zero1` communicates in `step()`, after backward.",
    ),
    (
        _with(ddp=_whole_model_first),
        "DDP's first bucket is counted as ready when backward begins: it is there when the last unit's backward ends.",
    ),
    (
        _with(ddp=lambda job: overlapped(job, order=1)),
        "DDP's buckets are sent in forward order: backward finishes the last unit first.",
    ),
    (
        lambda job, s: max(compute(job), seconds(job, s) - compute(job)) if s != "ddp" else seconds(job, s),
        "everything is counted as overlapping. Only DDP's buckets travel while something computes; the others wait for "
        "each collective where it is issued.",
    ),
    (
        lambda job, s: seconds(job, s) - compute(job) if s != "ddp" else seconds(job, s),
        "compute is left out where nothing overlaps: forward and backward come on top of the collectives.",
    ),
    (_on(lambda job: replace(job, latency=0.0)), "the latency is left out: each step of a ring takes `latency`."),
    (
        _with(fsdp=lambda job: waited(job, 2), hsdp=lambda job: two_levels(job, inside=2)),
        "FSDP and HSDP are counted with two passes: a gather for forward, one for backward, and a reduce-scatter.",
    ),
    (
        _with(fsdp=lambda job: waited(job, 2)),
        "FSDP is counted with two passes: a gather for forward, one for backward, and a reduce-scatter.",
    ),
    (
        _with(hsdp=lambda job: two_levels(job, across=1 / job.per_node)),
        "HSDP's all-reduces are counted as if each rank had a link of its own: the G ranks of a node share one, and "
        "together send 2 (R - 1)/R S.",
    ),
    (
        _with(hsdp=lambda job: two_levels(job, across=0.0, steps=0)),
        "HSDP is counted without its all-reduce among the nodes: each unit's shards are averaged across them.",
    ),
    (
        _with(hsdp=lambda job: two_levels(job, inside=0)),
        "HSDP's gathers and reduce-scatters inside the node are left out: they take little, but not nothing.",
    ),
    (
        _with(hsdp=lambda job: compute(job) + sum(
            ring(job, 3, size, job.per_node, job.nodes > 1)
            + 2 * (job.nodes - 1) * (size / job.nodes / job.across + job.latency) for size in job.sizes)),
        "HSDP's gathers are counted on the link between nodes: they stay inside, at `inside` bytes per second.",
    ),
    (
        _with(hsdp=lambda job: two_levels(job, steps=1)),
        "an all-reduce among R nodes takes 2 (R - 1) steps, not R - 1.",
    ),
    (
        _with(hsdp=lambda job: waited(job, 3)),
        "HSDP is counted as FSDP: its gathers stay inside the node, and only an all-reduce crosses.",
    ),
    (
        lambda job, s: seconds(job if s == "hsdp" or job.nodes > 1 else replace(job, inside=job.across), s),
        "one node has no link to others: there a ring runs at `inside` bytes per second.",
    ),
    (
        lambda job, s: overlapped(job, backward=1) if s == "ddp" else seconds(job, s) - sum(job.forward),
        "backward is counted as long as forward: it takes twice as long, so compute is 3 times the sum of `forward`.",
    ),
    (
        lambda job, s: seconds(job, s) - sum(job.forward) if s != "ddp" else seconds(job, s),
        "backward takes twice as long as forward: compute is 3 times the sum of `forward`.",
    ),
    (lambda job, s: 1e3 * seconds(job, s), "the answer is in milliseconds; return seconds."),
)  # fmt: skip


def verify(answer: Any) -> str:
    returned = run_cases(answer, {"": _observe}, 1)[""][0].value
    judge([plain_number(each, "the seconds of a step", "a step takes more than 0 seconds") for each in returned])
    return (
        f"a step of DDP, ZeRO-1, FSDP and HSDP for {len(JOBS)} clusters, as a simulation event by event has it: DDP's "
        "buckets travel during backward, all other collectives are waited for; links inside and across, latencies."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return answers_to(((job, strategy) for job in JOBS for strategy in STRATEGIES), answer)


def judge(got: list[float]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first time that is wrong."""
    asked = [(job, strategy) for job in JOBS for strategy in STRATEGIES]
    raise_named(got, [([rule(*each) for each in asked], words) for rule, words in WRONG])
    for (job, strategy), found in zip(asked, got, strict=True):
        wanted = seconds(job, strategy)
        if not near(found, wanted):
            yours, right = format_seconds(found), format_seconds(wanted)
            if yours == right:
                yours, right = (f"{each} s" for each in apart(found, wanted))
            raise Mistake(
                f"{strategy} on {job.words}: your answer is {yours}, and a step takes {right}, of which "
                f"{format_seconds(compute(job))} are compute."
            )
