"""07.checkpoint_every: the steps between checkpoints that lose the least time, and how much that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from utils.checks.lab07.rules import Numbers, near, numbers_of
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to, shut_to_answers
from utils.checks.verdict import Mistake
from utils.theory.restarts import loss, mean_time_between_failures, young_interval

FLAT = 0.01  # by so much more than at the best may be lost: near it the curve is flat
EXACT = 0.01


@dataclass(frozen=True)
class Cluster:
    """The arguments of `checkpoint_every`. gpu_hours: between failures of one GPU. The others in seconds."""

    gpus: int
    gpu_hours: float
    step: float
    write: float
    restart: float

    @property
    def arguments(self) -> tuple[float, ...]:
        return self.gpus, self.gpu_hours, self.step, self.write, self.restart

    @property
    def words(self) -> str:
        return (
            f"{self.gpus:,} GPUs, {self.gpu_hours:g} GPU-hours between failures, steps of {self.step:g} s, "
            f"{self.write:g} s for a checkpoint, {self.restart:g} s for a restart"
        )

    @property
    def failure(self) -> float:
        """Seconds between two failures of the job."""
        return mean_time_between_failures(self.gpus, self.gpu_hours)

    def writing(self, every: float) -> float:
        """The share of the time that goes into checkpoints."""
        return self.write / (every * self.step)

    @shut_to_answers
    def avoidable(self, every: float) -> float:
        """The share of the time that depends on the interval: writing, and steps done again."""
        return self.writing(every) + every * self.step / 2 / self.failure

    @shut_to_answers
    def lost(self, every: float) -> float:
        """With the restarts, to first order."""
        return self.avoidable(every) + self.restart / self.failure

    @shut_to_answers
    def exactly(self, every: float) -> float:
        """The same by Daly's whole formula."""
        return loss(every * self.step, self.write, self.failure, self.restart).lost

    @property
    @shut_to_answers
    def best(self) -> int:
        low = max(1, int(young_interval(self.write, self.failure) / self.step))
        return min((low, low + 1), key=self.avoidable)


CLUSTERS = (
    Cluster(64, 50_000, 4.0, 30, 300),
    Cluster(1_024, 50_000, 6.0, 60, 600),
    Cluster(16_384, 50_000, 12.0, 20, 300),
    Cluster(16_384, 50_000, 12.0, 2, 120),
    Cluster(8, 20_000, 0.5, 5, 60),
    Cluster(4_096, 10_000, 60.0, 1, 30),  # a step is longer than the interval: every step
    Cluster(256, 50_000, 90.0, 40, 3_600),
    Cluster(16_384, 50_000, 120.0, 0.1, 120),  # the best interval is 0.4 steps
    Cluster(16_384, 50_000, 25.0, 0.1, 120),  # 1.9 steps
)

Every = Callable[[Cluster], float]
Share = Callable[[Cluster, float], float]


def _steps(seconds: float, cluster: Cluster) -> float:
    return max(1, round(seconds / cluster.step))


def _by(write: Every, failure: Every, factor: float = 2) -> Every:
    return lambda c: _steps((factor * write(c) * failure(c)) ** 0.5, c)


def _write(c: Cluster) -> float:
    return c.write


def _failure(c: Cluster) -> float:
    return c.failure


# A rule that somebody may have followed, for the steps -> what is wrong with it.
WRONG_EVERY: tuple[tuple[Every, str], ...] = (
    (
        _by(_write, lambda c: 3600 * c.gpu_hours),
        "you take the hours of *one* GPU: any of them stops the job, so that it fails `gpus` times as often.",
    ),
    (
        _by(_write, lambda c: c.failure / 3600),
        "the time between failures is in hours, all else in seconds: 3600 s in an hour.",
    ),
    (
        _by(_write, _failure, 1),
        "you count the whole interval as lost in a failure: it comes anywhere in it, and half is lost on the average.",
    ),
    (
        _by(lambda c: c.write + c.restart, _failure),
        "the restart is counted to each checkpoint. It is paid for each *failure*, however often you write, and does "
        "not move the best interval.",
    ),
    (
        lambda c: young_interval(c.write, c.failure),
        "the interval is in seconds; return a whole number of *steps*.",
    ),
    (
        lambda c: c.failure / c.step,
        "you write once for each failure: then half of all the work is done again. Writing is cheaper than that.",
    ),
    (
        lambda c: 1,
        "you write after every step: that costs `write_seconds` each time, and failures are rare.",
    ),
)
# The same for the share that is lost with these steps between checkpoints.
WRONG_SHARE: tuple[tuple[Share, str], ...] = (
    (
        lambda c, every: c.avoidable(every),
        "the restarts are left out of the share that is lost: `restart_seconds` for each failure.",
    ),
    (
        lambda c, every: c.lost(every) - c.writing(every),
        "the writing is left out of the share that is lost: `write_seconds` for each interval.",
    ),
    (
        lambda c, every: c.lost(every) + every * c.step / 2 / c.failure,
        "each failure is counted with a whole interval: on the average it comes in the middle.",
    ),
    (
        lambda c, every: c.avoidable(every) + c.restart / (every * c.step),
        "the share counts a restart with each checkpoint: one is paid for each *failure*, every M seconds.",
    ),
    (
        lambda c, every: c.writing(every) + (c.lost(every) - c.writing(every)) / c.gpus,
        "the share takes the failures of *one* GPU: the job of `gpus` of them fails `gpus` times as often.",
    ),
    (
        lambda c, every: c.writing(every) + 3600 * (c.lost(every) - c.writing(every)),
        "in the share the time between failures is in hours, all else in seconds: 3600 s in an hour.",
    ),
    (
        lambda c, every: c.lost(every) * c.failure,
        "the second number is in seconds; return the share of the time that is lost.",
    ),
    (
        lambda c, every: 100 * c.lost(every),
        "the share is in percent; return it as a number from 0 to 1.",
    ),
    (
        lambda c, every: 1 - c.lost(every),
        "you return the share that is useful; return the one that is lost.",
    ),
)


def verify(answer: Any) -> str:
    judge(run_cases(answer, {"": observe}, 1)[""][0].value)
    return (
        f"for {len(CLUSTERS)} clusters of 8 to 16,384 GPUs a whole number of steps, 1 at least, with which writing "
        "and steps done again take within 1% of the least time; and the share of the time that is lost, with restarts."
    )


def observe(answer: Any, mark: Mark) -> list[Numbers | str]:
    """In a rank."""
    got = answers_to([cluster.arguments for cluster in CLUSTERS], answer)
    return [numbers_of(each, 2) for each in got]


def judge(got: Sequence[Numbers | str]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first cluster that is wrong."""
    for each in got:
        if isinstance(each, str):
            raise Mistake(f"your function returns {each}; return the pair `(every, lost)`.")
    pairs = list(zip(CLUSTERS, got, strict=True))
    if not all(_good(cluster, every) for cluster, (every, _) in pairs):
        _wrong_every(pairs)
    if all(_right_share(cluster, every, lost) for cluster, (every, lost) in pairs):
        return
    for share, words in WRONG_SHARE:
        if all(near(lost, share(cluster, every), EXACT) for cluster, (every, lost) in pairs):
            raise Mistake(words)
    cluster, (every, lost) = next(pair for pair in pairs if not _right_share(pair[0], *pair[1]))
    raise Mistake(
        f"{cluster.words}: with a checkpoint every {every:g} steps the share {cluster.lost(every):.3g} of the time is "
        f"lost, and yours is {lost:.3g}."
    )


def _wrong_every(pairs: Sequence[tuple[Cluster, Numbers]]) -> None:
    for rule, words in WRONG_EVERY:
        if all(abs(every - rule(cluster)) <= 1 + 0.005 * every for cluster, (every, _) in pairs):
            raise Mistake(words)
    for cluster, (every, _) in pairs:
        if every < 1:
            raise Mistake(f"{cluster.words}: a checkpoint every {every:g} steps; 1 step is the least.")
        if every != int(every):
            raise Mistake(f"{cluster.words}: {every:g} is no whole number of steps.")
    for rounded, how in ((math.floor, "down"), (math.ceil, "up")):
        if all(every == max(1, rounded(_young_steps(cluster))) for cluster, (every, _) in pairs):
            raise Mistake(f"Young's interval is rounded {how}: 1.9 steps are nearer to 2, 2.2 too. `round` it.")
    cluster, (every, _) = next(pair for pair in pairs if not _good(pair[0], pair[1][0]))
    raise Mistake(
        f"{cluster.words}: with a checkpoint every {every:g} steps writing and doing again take "
        f"{cluster.avoidable(every):.3g} of the time, every {cluster.best} steps {cluster.avoidable(cluster.best):.3g}."
    )


def _young_steps(cluster: Cluster) -> float:
    return young_interval(cluster.write, cluster.failure) / cluster.step


def _good(cluster: Cluster, every: float) -> bool:
    whole = every == int(every) and every >= 1
    return whole and cluster.avoidable(every) <= (1 + FLAT) * cluster.avoidable(cluster.best)


def _right_share(cluster: Cluster, every: float, lost: float) -> bool:
    return near(lost, cluster.lost(every), EXACT) or near(lost, cluster.exactly(every), EXACT)
