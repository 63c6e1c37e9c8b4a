"""How throughput grows with the number of ranks, when part of a step is shared out and part is not.

A step takes (compute per sample) x (samples of this rank) + (what every rank repeats whole: the optimizer's step, and
the communication that no compute hides).

Sources. Strong scaling, the whole batch fixed: Amdahl, "Validity of the single processor approach to achieving large
scale computing capabilities", AFIPS 1967. Weak scaling, the batch of each rank fixed: Gustafson, "Reevaluating
Amdahl's law", Communications of the ACM 31(5), 1988.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_ranks
from utils.theory.units import plain


@dataclass(frozen=True)
class Scaling:
    """A step on N ranks. samples: of all ranks. efficiency: throughput over N times the throughput of one rank."""

    world_size: int
    samples: float
    seconds: float
    efficiency: float

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds


def weak_scaling(world_size: int, samples_per_rank: float, seconds_per_sample: float, repeated: float) -> Scaling:
    """Every rank keeps its batch; N ranks work on N times as many samples, and no step gets longer.

    seconds_per_sample: compute, forward and backward. repeated: seconds of a step that every rank spends whole.
    What is repeated is the same on one rank, so the efficiency is 1. Communication, which one rank has not, is what
    lowers it. Raises ValueError, in one sentence, for numbers out of range.
    """
    _check(world_size, samples_per_rank, seconds_per_sample, repeated)
    world_size, samples_per_rank = int(world_size), plain(samples_per_rank)
    seconds_per_sample, repeated = float(seconds_per_sample), float(repeated)
    seconds = samples_per_rank * seconds_per_sample + repeated
    return Scaling(world_size, world_size * samples_per_rank, seconds, 1.0)


def strong_scaling(world_size: int, samples: float, seconds_per_sample: float, repeated: float) -> Scaling:
    """The whole batch stays; N ranks share it out, and what is repeated stays as long as it was.

    With T = samples x seconds_per_sample: efficiency (T + repeated) / (T + N x repeated).
    Arguments and errors as for `weak_scaling`; `samples` are those of all ranks.
    """
    _check(world_size, samples, seconds_per_sample, repeated)
    world_size, samples = int(world_size), plain(samples)
    seconds_per_sample, repeated = float(seconds_per_sample), float(repeated)
    whole = samples * seconds_per_sample
    return Scaling(
        world_size, samples, whole / world_size + repeated, (whole + repeated) / (whole + world_size * repeated)
    )


def _check(world_size: int, samples: float, seconds_per_sample: float, repeated: float) -> None:
    check_ranks("world_size", world_size)
    check_amount("the number of samples", samples, "a batch", "such as 32")
    check_amount("seconds_per_sample", seconds_per_sample, "a duration", "such as 0.010")
    check_amount("repeated", repeated, "a duration", "such as 0.050", least=0)
