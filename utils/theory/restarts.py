"""Failures at scale: how often, what a failure costs, and how often to write a checkpoint.

With a mean time M between failures, a checkpoint that takes C seconds and a restart that takes R, a job that writes one
every T seconds of work loses

- C of every T + C to writing;
- on the average half an interval to each failure, the steps that are done again, and R besides.

Sources. The interval sqrt(2 C M): J. W. Young, "A first order approximation to the optimum checkpoint interval",
Communications of the ACM 17(9), 1974. The whole time with failures that come at any moment, in restarts too, and a
better interval: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
Generation Computer Systems 22, 2006. Failures of GPUs: A. Grattafiori et al., "The Llama 3 Herd of Models",
arXiv:2407.21783, section 3.3.4: 419 unexpected interruptions in 54 days on 16,384 H100.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_ranks, check_whole

HOUR = 3600.0
#: Hours that one GPU, with its part of host and network, runs between two interruptions: 16,384 · 54 · 24 / 419.
LLAMA_3_GPU_HOURS = 16_384 * 54 * 24 / 419


def mean_time_between_failures(gpus: int, gpu_hours: float = LLAMA_3_GPU_HOURS) -> float:
    """Seconds between failures of a job that any of its GPUs stops: those of one GPU, divided by how many there are.

    gpu_hours: of one GPU, in hours. Failures are taken to be independent of each other.
    """
    check_ranks("gpus", gpus, "a number of GPUs")
    check_amount("gpu_hours", gpu_hours, "hours between failures of one GPU", "such as 50_000")
    return HOUR * float(gpu_hours) / int(gpus)


def young_interval(checkpoint_seconds: float, failure_seconds: float) -> float:
    """Seconds of work between checkpoints that lose the least, to first order: sqrt(2 C M).

    checkpoint_seconds: C, for which the work stands still. failure_seconds: M, the mean time between failures.
    Good where C is much smaller than M.
    """
    _check(checkpoint_seconds, failure_seconds)
    return math.sqrt(2 * float(checkpoint_seconds) * float(failure_seconds))


def daly_interval(checkpoint_seconds: float, failure_seconds: float) -> float:
    """The same to a higher order (Daly 2006): sqrt(2 C M) · (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C.

    M where C is 2 M or more.
    """
    c, m = _check(checkpoint_seconds, failure_seconds)
    if c >= 2 * m:
        return m
    ratio = c / (2 * m)
    return math.sqrt(2 * c * m) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - c


@dataclass(frozen=True)
class Loss:
    """Where the time of a job goes, as shares of its whole time. useful: work that is kept.

    writing: checkpoints. again: work that is done a second time. restarting: from a failure to the first step.
    """

    useful: float
    writing: float
    again: float
    restarting: float

    @property
    def lost(self) -> float:
        """All but the useful part."""
        return 1 - self.useful


def loss(interval: float, checkpoint_seconds: float, failure_seconds: float, restart_seconds: float = 0.0) -> Loss:
    """Shares of the time of a job that writes a checkpoint after every `interval` seconds of work.

    Daly's whole time: a useful interval takes M e^(R/M) (e^((T + C)/M) - 1) seconds when failures come at any moment
    with a mean of M between two, while work is done again and while it is restarted too. Writing takes C of it,
    restarts M (e^(R/M) - 1) for each interval that is broken off, and the rest of what is not T is work done again.
    Raises ValueError, in one sentence, for a value out of range.
    """
    c, m = _check(checkpoint_seconds, failure_seconds)
    check_amount("interval", interval, "seconds of work between checkpoints", "such as 600")
    check_amount("restart_seconds", restart_seconds, "seconds from a failure to the next step", "such as 300", least=0)
    t, r = float(interval), float(restart_seconds)
    if (t + c + r) / m > 500:  # e to that is more than a float holds: nothing ever gets done
        return Loss(0.0, 0.0, 1 - min(1.0, r / m), min(1.0, r / m))
    whole = m * math.exp(r / m) * math.expm1((t + c) / m)
    restarting = (
        m * math.expm1(r / m) * math.expm1((t + c) / m)
    )  # e^((T + C)/M) - 1 tries fail, each is followed by one
    again = max(0.0, whole - t - c - restarting)
    return Loss(t / whole, c / whole, again / whole, restarting / whole)


def steps_lost(every: int) -> tuple[float, int]:
    """(on the average, at most) steps that are done again after a failure, with a checkpoint every `every` steps.

    A failure comes in any of the steps with equal chance: 0 to `every` - 1 steps are done since the checkpoint, and the
    one that it interrupts is not done. At most `every` where it comes in the writing of the next checkpoint.
    """
    check_whole("every", every, "steps between checkpoints")
    return (int(every) - 1) / 2, int(every)


def lost_per_day(
    every: int, step_seconds: float, gpus: int, gpu_hours: float = LLAMA_3_GPU_HOURS
) -> tuple[float, float]:
    """(failures in 24 hours, GPU-hours of steps done again in them) with a checkpoint every `every` steps.

    On the average half an interval for each failure; restarts and writing are not in it.
    """
    check_whole("every", every, "steps between checkpoints")
    check_amount("step_seconds", step_seconds, "how long a step takes", "such as 10")
    failures = 24 * HOUR / mean_time_between_failures(gpus, gpu_hours)
    return failures, failures * int(gpus) * (int(every) / 2) * float(step_seconds) / HOUR


def _check(checkpoint_seconds: float, failure_seconds: float) -> tuple[float, float]:
    check_amount("checkpoint_seconds", checkpoint_seconds, "for how long a checkpoint stops the work", "such as 30")
    check_amount("failure_seconds", failure_seconds, "the mean time between failures", "such as 3 * 3600")
    return float(checkpoint_seconds), float(failure_seconds)
