"""08.predict_bytes: what a rank sends in a step, and what a node sends to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from utils.checks.lab08.job import STRATEGIES, Job
from utils.checks.lab08.laws import JOBS, sent
from utils.checks.lab08.named import apart, listed, near, plain_number, raise_named, shown
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to
from utils.checks.verdict import Mistake

Pair = tuple[float, float]
Rule = Callable[[Job, str], Pair]


def _size(job: Job) -> int:
    """S, the bytes of all gradients."""
    return sum(job.sizes)


def _passes(strategy: str, passes: int) -> Rule:
    """The law, but this strategy sends so many times (N - 1)/N S."""

    def rule(job: Job, s: str) -> Pair:
        if s != strategy:
            return sent(job, s)
        moved = passes * (job.ranks - 1) / job.ranks * _size(job)
        return moved, moved if job.nodes > 1 else 0.0

    return rule


def _without_share(job: Job, s: str) -> Pair:
    """(n - 1)/n taken as 1 everywhere."""
    size, alone = _size(job), job.nodes == 1
    if s == "hsdp":
        return 3 * size + 2 * size / job.per_node, 0.0 if alone else 2 * size
    passes = 3 if s == "fsdp" else 2
    return passes * size, 0.0 if alone else passes * size


def _hsdp(rule: Callable[[Job], Pair]) -> Rule:
    return lambda job, s: rule(job) if s == "hsdp" else sent(job, s)


def _inside(job: Job) -> float:
    """What a rank sends within its shard group."""
    return 3 * (job.per_node - 1) / job.per_node * _size(job)


# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        _passes("ddp", 1),
        "DDP's all-reduce is counted once: it is a reduce-scatter and an all-gather, 2 (N - 1)/N S.",
    ),
    (_passes("zero1", 3), "ZeRO-1 is counted with three passes: it reduce-scatters gradients and gathers weights."),
    (_passes("zero1", 1), "ZeRO-1 is counted without the gather of the new weights, or without its reduce-scatter."),
    (
        _passes("fsdp", 2),
        "FSDP is counted with two passes: it gathers for forward, gathers for backward, and reduce-scatters.",
    ),
    (_without_share, "a rank never sends its own part to itself: every pass of a ring has (n - 1)/n, not 1."),
    (
        lambda job, s: sent(job, s) if s == "hsdp" else _without_share(job, s),
        "under DDP, ZeRO-1 and FSDP a pass is counted as the whole: it is (N - 1)/N of it.",
    ),
    (
        _hsdp(lambda job: _without_share(job, "hsdp")),
        "under HSDP a pass is counted as the whole: it is (G - 1)/G of it inside a node, (R - 1)/R across.",
    ),
    (
        lambda job, s: (sent(job, s)[0], sent(job, s)[1] * job.nodes),
        "what all nodes together send across is counted: return what one node sends.",
    ),
    (
        lambda job, s: (sent(job, s)[0], sent(job, s)[1] * job.per_node),
        "the bytes across are G times too many: a ring leaves a node once, and HSDP's G rings carry S/G each.",
    ),
    (
        lambda job, s: (sent(job, s)[0], sent(job, s)[1] * (1 if s == "hsdp" else job.per_node)),
        "every rank of a node is counted as sending across. A ring that follows the nodes leaves each node once: a "
        "node sends across what one rank sends.",
    ),
    (
        _hsdp(lambda job: (sent(job, "hsdp")[0], sent(job, "hsdp")[1] / job.per_node)),
        "HSDP's bytes across are those of one rank: G all-reduces leave a node, one from each rank.",
    ),
    (
        _hsdp(lambda job: (_inside(job) + sent(job, "hsdp")[1], sent(job, "hsdp")[1])),
        "under HSDP a rank all-reduces its shard alone, S/G: what leaves a node is what all its G ranks send.",
    ),
    (
        _hsdp(lambda job: (_inside(job), sent(job, "hsdp")[1])),
        "a rank's bytes under HSDP are those inside the node alone; it sends its all-reduce across as well.",
    ),
    (
        _hsdp(lambda job: (sent(job, "hsdp")[0], sent(job, "hsdp")[0] if job.nodes > 1 else 0.0)),
        "HSDP's gathers are counted as crossing: they stay inside the node.",
    ),
    (
        _hsdp(lambda job: sent(job, "fsdp")),
        "HSDP is counted as FSDP: its gathers and reduce-scatters run among the G ranks of a node, and an all-reduce "
        "of S/G among the R nodes comes on top.",
    ),
    (
        lambda job, s: (sent(job, s)[0], sent(job, s)[0] if job.nodes == 1 else sent(job, s)[1]),
        "with one node nothing crosses: 0 bytes.",
    ),
    (lambda job, s: (sent(job, s)[0] / 2, sent(job, s)[1] / 2), "2 bytes are counted for each number; fp32 has 4."),
    (
        lambda job, s: (sent(job, s)[0] / 4, sent(job, s)[1] / 4),
        "numbers are returned, not bytes: an fp32 number has 4.",
    ),
    (lambda job, s: sent(job, s)[::-1], "the two are exchanged: what a rank sends comes first."),
)  # fmt: skip


def verify(answer: Any) -> str:
    judge(run_cases(answer, {"": _observe}, 1)[""][0].value)
    return (
        f"what a rank sends in a step, and a node to the others, under DDP, ZeRO-1, FSDP and HSDP, for {len(JOBS)} "
        "clusters: one node, one rank on each, odd numbers of nodes, 16 nodes of 8."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return answers_to(((job, strategy) for job in JOBS for strategy in STRATEGIES), answer)


def judge(returned: list[Any]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first pair that is wrong."""
    asked = [(job, strategy) for job in JOBS for strategy in STRATEGIES]
    pairs = [_pair(each) for each in returned]
    raise_named(_flat(pairs), [(_flat([rule(*each) for each in asked]), words) for rule, words in WRONG])
    for (job, strategy), found in zip(asked, pairs, strict=True):
        for got, wanted, whose in zip(found, sent(job, strategy), ("a rank sends", "a node sends across"), strict=True):
            if not near(got, wanted):
                size = _size(job)
                yours, right = apart(got / size, wanted / size)
                raise Mistake(f"{strategy} on {job.words}: by your answer {whose} {yours} S, and it is {right} S.")


def _pair(returned: Any) -> Pair:
    if returned is None:
        raise Mistake("your function returns nothing; return a pair of bytes.")
    pair = listed(returned)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise Mistake(
            f"your function returns {shown(returned)}; return a pair: what a rank sends, what a node sends across."
        )
    rank, node = (plain_number(each, "bytes", not_negative="0 bytes or more are sent") for each in pair)
    return rank, node


def _flat(pairs: list[Pair]) -> list[float]:
    return [each for pair in pairs for each in pair]
