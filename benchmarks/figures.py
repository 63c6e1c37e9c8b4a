"""How every benchmark here measures: A and B in turns in one run, medians of many, A against A beside them."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One line of a benchmark's result. `bound` is what the figure must keep to, `holds` whether it does.

    `spread` is the ratio of two medians of the same thing, measured in turns: how far from 1 chance alone gets.
    """

    figure: str
    value: float
    bound: str
    spread: float | None
    holds: bool

    def print(self) -> None:
        """The figure as one JSON line, which ends a benchmark's output."""
        rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items()}
        print(json.dumps(rounded), flush=True)


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time each call once per round, one after the other, so that a slow minute hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return times


def spread(times: list[float]) -> float:
    """A against A: the median of the even rounds over the median of the odd ones, the larger over the smaller."""
    even, odd = statistics.median(times[::2]), statistics.median(times[1::2] or times)
    return max(even, odd) / min(even, odd)


def resident() -> tuple[int, int]:
    """(now, at most since the process began) bytes of this process in memory, by the kernel's account."""
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return tuple(1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]
