"""07.feed: the bytes per second that a job takes from its store, and its step on a store that has fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from utils.checks.lab07.rules import Numbers, near, numbers_of
from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to, shut_to_answers
from utils.checks.verdict import Mistake
from utils.theory.units import GB, MB, KiB

EXACT = 0.01


@dataclass(frozen=True)
class Job:
    """The arguments of `feed`. batch: samples of one GPU in a step. flops: operations per second of one GPU.

    store: bytes per second, for all GPUs together.
    """

    name: str
    parameters: float
    tokens: int
    batch: int
    gpus: int
    flops: float
    sample: float
    store: float

    @property
    def arguments(self) -> tuple[float, ...]:
        return self.parameters, self.tokens, self.batch, self.gpus, self.flops, self.sample, self.store

    @property
    def compute(self) -> float:
        """Seconds of a step without loading."""
        return 6 * self.parameters * self.tokens * self.batch / self.flops

    @property
    def bytes(self) -> float:
        """That all GPUs read for a step."""
        return self.gpus * self.batch * self.sample

    @property
    @shut_to_answers
    def wanted(self) -> Numbers:
        return self.bytes / self.compute, max(self.compute, self.bytes / self.store)


JOBS = (
    Job("a text model of 7e9 parameters on 1,024 GPUs", 7e9, 4096, 4, 1024, 400e12, 16 * KiB, 1 * GB),
    Job("an image model on 64 GPUs", 86e6, 197, 256, 64, 200e12, 110e3, 20 * GB),
    Job("an image model on 512 GPUs and a slow store", 86e6, 197, 256, 512, 200e12, 110e3, 20 * GB),
    Job("a video model on 256 GPUs", 2e9, 8192, 2, 256, 350e12, 4 * MB, 600 * MB),
    Job("a small model on one GPU and a slow disk", 25e6, 1024, 32, 1, 50e12, 2 * MB, 100 * MB),
)

Rule = Callable[[Job], float]


def _rate(factor: Rule) -> Rule:
    return lambda job: factor(job) * job.wanted[0]


# What somebody may have returned first -> what is wrong with it.
WRONG_RATE: tuple[tuple[Rule, str], ...] = (
    (
        _rate(lambda job: 1 / job.gpus),
        "the rate is that of one GPU: all `gpus` read from the one store.",
    ),
    (
        _rate(lambda job: 1 / job.batch),
        "the rate is that of one sample in a step: each GPU takes `batch` of them.",
    ),
    (
        _rate(lambda job: job.batch),
        "the step is that of one sample: it takes 6Ψ operations for each token of *all* `batch` samples of a GPU.",
    ),
    (
        _rate(lambda job: 3),
        "2Ψ operations for each token are the forward alone: backward takes twice as many, 6Ψ together.",
    ),
    (
        _rate(lambda job: job.tokens),
        "the step is that of one token: a sample has `tokens` of them.",
    ),
    (
        _rate(lambda job: job.gpus),
        "the step is divided by the number of GPUs: each GPU computes its own batch, in the same time as without the "
        "others.",
    ),
    (
        lambda job: job.bytes / job.wanted[1],
        "the rate is what the store gives now: divide by the compute's seconds, so that nobody waits.",
    ),
    (
        _rate(lambda job: 1e-6),
        "return bytes per second, not MB.",
    ),
    (
        _rate(lambda job: 1e-9),
        "return bytes per second, not GB.",
    ),
    (
        _rate(lambda job: 1 / job.sample),
        "the rate is in samples per second; return bytes: `sample_bytes` for each.",
    ),
    (
        lambda job: job.bytes,
        "the first number is the bytes of a step; return bytes per *second*: divide by the seconds of a step.",
    ),
    (
        _rate(lambda job: 8),
        "the rate is in bits per second; return bytes.",
    ),
)
# The same for the second number.
WRONG_STEP: tuple[tuple[Rule, str], ...] = (
    (
        lambda job: job.compute,
        "the step does not know the store: where that delivers fewer bytes, the step lasts as long as the loading.",
    ),
    (
        lambda job: job.bytes / job.store,
        "the step is the loading alone: where the store is fast enough, it lasts as long as the compute.",
    ),
    (
        lambda job: job.compute + job.bytes / job.store,
        "compute and loading are added: batches are read ahead, while the one before computes. The longer one is the "
        "step.",
    ),
    (
        lambda job: min(job.compute, job.bytes / job.store),
        "the step is the shorter of compute and loading: it lasts as long as the longer one.",
    ),
    (
        lambda job: 1e3 * job.wanted[1],
        "the step is in milliseconds; return seconds.",
    ),
    (
        lambda job: max(job.compute, job.bytes // job.store),
        "the loading is cut to whole seconds by `//`; divide with `/`.",
    ),
    (
        lambda job: max(job.compute, job.bytes / job.gpus / job.store),
        "the store is counted as if each GPU had one of its own: all share its bytes per second.",
    ),
)


def verify(answer: Any) -> str:
    judge(run_cases(answer, {"": observe}, 1)[""][0].value)
    return (
        f"for {len(JOBS)} jobs, text, images and video on 1 to 1,024 GPUs: the bytes per second that the store must "
        "deliver, and the step on the store that is there, whichever of compute and loading is longer; within 1%."
    )


def observe(answer: Any, mark: Mark) -> list[Numbers | str]:
    """In a rank."""
    return [numbers_of(each, 2) for each in answers_to([job.arguments for job in JOBS], answer)]


def judge(got: Sequence[Numbers | str]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first job that is wrong."""
    for each in got:
        if isinstance(each, str):
            raise Mistake(f"your function returns {each}; return the pair `(bytes_per_second, step_seconds)`.")
    wanted = [job.wanted for job in JOBS]
    if all(_same(mine[::-1], right) for mine, right in zip(got, wanted, strict=True)):
        raise Mistake("the two are swapped: bytes per second come first, then the seconds of a step.")
    _judge_bytes_of_a_token(got)
    for place, rules, unit in ((0, WRONG_RATE, "B/s"), (1, WRONG_STEP, "s")):
        if all(near(mine[place], right[place], EXACT) for mine, right in zip(got, wanted, strict=True)):
            continue
        for rule, words in rules:
            if all(near(mine[place], rule(job), EXACT) for job, mine in zip(JOBS, got, strict=True)):
                raise Mistake(words)
        job, mine = next((j, m) for j, m in zip(JOBS, got, strict=True) if not near(m[place], j.wanted[place], EXACT))
        what = "the store must deliver" if place == 0 else "a step lasts"
        raise Mistake(f"{job.name}: {what} {job.wanted[place]:.4g} {unit}, and yours is {mine[place]:.4g} {unit}.")


def _judge_bytes_of_a_token(got: Sequence[Numbers]) -> None:
    """Raise Mistake if bytes are multiplied by the tokens, the compute being right: one token's would be shorter."""
    if all(
        near(rate, job.tokens * job.wanted[0], EXACT)
        and any(near(step, max(job.compute, factor * job.bytes / job.store), EXACT) for factor in (1, job.tokens))
        for job, (rate, step) in zip(JOBS, got, strict=True)
    ):
        raise Mistake("`sample_bytes` are those of a whole sample, not of a token.")


def _same(mine: Numbers, right: Numbers) -> bool:
    return all(near(a, b, EXACT) for a, b in zip(mine, right, strict=True))
