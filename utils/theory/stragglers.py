"""One slow rank: every step ends with a collective, which ends when the last rank has come.

So a step takes what its *slowest* rank takes. Were the work handed out anew to whoever is free, N ranks of which one
takes f times as long would lose the share 1 - (N - 1 + 1/f) / N of their speed, about 1/N; in data parallelism each
rank has its own part of the batch, and all lose 1 - 1/f.
"""

from __future__ import annotations

from collections.abc import Sequence

from utils.theory.arguments import check_amount, check_ranks, check_share
from utils.theory.units import shown


def step_of_all(seconds: Sequence[float], communication: float = 0.0) -> float:
    """Seconds of a step in which each rank computes for its own time: the longest of them, and what is not hidden.

    seconds: by rank. communication: seconds after the last rank has come. Raises ValueError for an empty list.
    """
    check_amount("communication", communication, "a time in seconds", "such as 0.005", least=0)
    return max(_times(seconds)) + float(communication)


def slowdown(world_size: int, factor: float, handed_out_anew: bool = False) -> float:
    """How many times as long a step takes if one of `world_size` ranks takes `factor` times as long: `factor`.

    handed_out_anew: instead, if work went to whoever is free, so that N - 1 + 1/f ranks' worth of work is done.
    factor: at least 1; a fast rank waits for the others.
    """
    check_ranks("world_size", world_size)
    check_amount("factor", factor, "how many times as long the slow rank takes", "such as 2", least=1)
    n, f = int(world_size), float(factor)
    return n / (n - 1 + 1 / f) if handed_out_anew else f


def wasted(seconds: Sequence[float]) -> float:
    """The share of all ranks' time in which they wait for the slowest: 1 - mean / longest."""
    times = _times(seconds)
    longest = max(times)
    return max(0.0, 1 - sum(times) / len(times) / longest) if longest else 0.0


def chance_of_one(world_size: int, share: float) -> float:
    """The chance that at least one of `world_size` ranks is slow in a step, where each is with the chance `share`.

    1 - (1 - p)^n: with p = 0.001 it is 6% of 64 ranks and 100% of 16,384. The ranks are taken to be independent.
    """
    check_ranks("world_size", world_size)
    check_share("share", share, "the steps in which a rank is slow")
    return 1 - (1 - float(share)) ** int(world_size)


def _times(seconds: Sequence[float]) -> list[float]:
    """As Python's floats; ValueError unless there is at least one, and all are times."""
    try:
        times = [] if isinstance(seconds, str | bytes) else list(seconds)
    except TypeError:  # no list, or numpy's and torch's scalars
        times = []
    if not times:
        raise ValueError(f"seconds is {shown(seconds)}; give the time of each rank, such as [0.1, 0.1, 0.15]")
    for each in times:
        check_amount("a rank's seconds", each, "the time of a rank", "such as 0.1", least=0)
    return [float(each) for each in times]
