"""02.best_bucket_size: the bucket size with the shortest step on a given link, predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article
from utils.theory.sharing import GLOO_CONCURRENCY, Link
from utils.theory.step_time import Layer, simulate_step
from utils.theory.units import MB, MiB, format_bytes

SIZES = (1 * MiB, 4 * MiB, 8 * MiB, 16 * MiB, 64 * MiB)
LAYERS = tuple(Layer(0.005, gradient_bytes=4 * MiB) for _ in range(8))


@dataclass(frozen=True)
class Case:
    """A link for which another bucket size is the best."""

    name: str
    link: Link
    world_size: int = 2
    layers: tuple[Layer, ...] = LAYERS


CASES = (
    Case("a link of 1 GB/s without latency", Link(1000 * MB)),
    Case("a link of 1 GB/s with a latency of 4 ms", Link(1000 * MB, 0.004)),
    Case("the same link, 8 ranks", Link(1000 * MB, 0.004), 8),
    Case("a link of 125 MB/s with a latency of 2 ms, two transfers at a time", Link(125 * MB, 0.002, GLOO_CONCURRENCY)),
    Case(
        "a network whose last layers compute least and hold most, on 1.25 GB/s with a latency of 2 ms",
        Link(1250 * MB, 0.002),
        4,
        (Layer(0.010, gradient_bytes=1 * MiB),) * 5 + (Layer(0.002, gradient_bytes=6 * MiB),) * 4,
    ),
)


def verify(answer: Any) -> str:
    (seen,) = run_cases(answer, {"links": observe}, 1)["links"]
    if seen.value == [max(SIZES, key=simulated(case).__getitem__) for case in CASES]:
        raise Mistake("for every link you choose the size with the longest step: the shortest is asked for.")
    always = len(set(seen.value)) == 1
    for case, got in zip(CASES, seen.value, strict=True):
        judge(case, got, always)
    best = sorted({best_sizes(case)[0] for case in CASES})
    return (
        f"the shortest simulated step for {len(CASES)} links and models, of which the best buckets close at "
        f"{', '.join(format_bytes(size) for size in best)}."
    )


def observe(answer: Any, mark: Mark) -> list[Any]:
    """In a rank: what the answer returns for each case."""
    return [_plain(answer(list(case.layers), case.world_size, case.link, list(SIZES))) for case in CASES]


def simulated(case: Case, overlap: bool = True) -> dict[int, float]:
    """Seconds of a step by bucket size."""
    return {
        size: simulate_step(case.layers, case.world_size, case.link, bucket_bytes=size, overlap=overlap).seconds
        for size in SIZES
    }


def best_sizes(case: Case) -> list[int]:
    """The sizes whose step is the shortest, within rounding."""
    seconds = simulated(case)
    least = min(seconds.values())
    return [size for size in SIZES if seconds[size] <= least * (1 + 1e-9)]


def judge(case: Case, got: Any, always: bool = False) -> None:
    """In the notebook. `always`: it is the same for every link and model."""
    if isinstance(got, str):
        raise Mistake(f"your function returns {got}; it is to return one of the sizes, in bytes.")
    seconds = simulated(case)
    if got not in SIZES:
        near = any(abs(got - each) <= 1e-6 * each for each in seconds.values())
        what = "the step's seconds" if near else f"{got!r}, which is none of the sizes"
        raise Mistake(f"your function returns {what}; return the size in bytes that gives the shortest step.")
    best = best_sizes(case)
    if got in best:
        return
    apart = simulated(case, overlap=False)
    backwards = case.layers[::-1]
    if backwards != case.layers and got in best_sizes(replace(case, layers=backwards)) and not always:
        why = " That is the best if the first layers come last: `simulate_step` takes `layers` as they are."
    elif got in [size for size in SIZES if apart[size] <= min(apart.values()) * (1 + 1e-9)] and got >= max(best):
        why = " Fewest messages are not all: the first bucket must be full before anything overlaps."
    elif got == min(SIZES):
        why = " Small buckets begin early, but each all-reduce pays the latency again."
    else:
        why = ""
    if always:
        why += " You choose it for every link and model: does `simulate_step` get the link, and each size?"
    raise Mistake(
        f"for {case.name} you choose {format_bytes(got)}: simulated, its step takes {1e3 * seconds[got]:.1f} ms, and "
        f"that of {format_bytes(best[0])} {1e3 * seconds[best[0]]:.1f} ms.{why}"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
        return with_article(type(value).__name__)
    return int(value) if isinstance(value, Integral) else float(value)
