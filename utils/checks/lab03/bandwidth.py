"""03.bandwidths: algbw and busbw, beside rows that others have published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utils.checks.lab03.numbers import apart, pair_of
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.theory.sweeps import sweeps
from utils.theory.traffic import algorithm_bandwidth, bus_bandwidth
from utils.theory.units import GB, GiB, MiB

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")


@dataclass(frozen=True)
class Question:
    """kind, S in bytes, ranks, seconds: the arguments; and where the figures come from."""

    kind: str
    size: int
    world_size: int
    seconds: float
    place: str

    @property
    def wanted(self) -> tuple[float, float]:
        """(algbw, busbw) in GB/s."""
        args = self.kind, self.size, self.world_size, self.seconds
        return algorithm_bandwidth(self.size, self.seconds) / GB, bus_bandwidth(*args) / GB


def questions() -> tuple[Question, ...]:
    """Round figures for each collective, and all published all-reduces."""
    round_ones = tuple(
        Question(kind, size, ranks, seconds, f"{kind}, {size} B, {ranks} ranks, {seconds:g} s")
        for kind in KINDS
        for size, ranks, seconds in ((10**9, 4, 0.5), (32 * MiB, 8, 0.002), (2 * GiB, 3, 0.01))
    )
    published = tuple(
        Question(each.kind, size, each.world_size, seconds, f"{each.kind} on {each.name}, {size} B")
        for each in sweeps().values()
        for size, seconds in each.measured
    )
    return (*round_ones, *published)


def verify(answer: Any) -> str:
    asked = questions()
    got = run_cases(answer, {"numbers": observe}, 1)["numbers"][0].value
    for question, pair in zip(asked, got, strict=True):
        judge(question, pair)
    return (
        f"algbw and busbw of {len(asked)} all-reduces, all-gathers, reduce-scatters and broadcasts, in GB/s, among "
        f"them the published sweeps of {len(sweeps())} clusters."
    )


def observe(answer: Any, mark: Mark) -> list[Any]:
    """In a rank: what the answer gives for each question."""
    return [pair_of(answer(q.kind, q.size, q.world_size, q.seconds)) for q in questions()]


def judge(question: Question, got: tuple[float, float] | str) -> None:
    if isinstance(got, str):
        raise Mistake(f"the function returns {got}; return a pair of numbers, `algbw, busbw`.")
    algbw, busbw = question.wanted
    if _near(got[0], algbw) and _near(got[1], busbw):
        return
    place = f"for {question.place}: "
    factor = busbw / algbw
    if _near(got[0], busbw) and _near(got[1], algbw):
        raise Mistake(f"{place}the two are swapped: algbw comes first, {algbw:.2f} GB/s, then busbw, {busbw:.2f} GB/s.")
    for unit, times in (("bytes per second", 1e9), ("GiB/s", 1e9 / 2**30), ("MB/s", 1e3), ("Gbit/s", 8.0)):
        if _near(got[0], algbw * times):
            raise Mistake(f"{place}algbw is in {unit}; nccl-tests prints GB/s, 10**9 bytes per second: {algbw:.2f}.")
    if not _near(got[0], algbw):
        given, asked = apart(got[0], algbw)
        rounded = " Do not round: the table does that." if abs(got[0] - algbw) < 0.01 else ""
        raise Mistake(f"{place}algbw is S / t = {asked} GB/s, not {given}.{rounded}")
    if _near(got[1], algbw):
        raise Mistake(f"{place}busbw is {got[1]:.2f} GB/s, the same as algbw: the factor of the collective is missing.")
    if _near(got[1], algbw / factor):
        raise Mistake(f"{place}busbw is algbw times the factor {factor:.4g}, not divided by it.")
    if _near(got[1], 2 * busbw) and question.kind in ("all_gather", "reduce_scatter"):
        raise Mistake(f"{place}busbw is twice too large: only an all-reduce goes around the ring twice.")
    given, asked = apart(got[1], busbw)
    raise Mistake(f"{place}busbw is {asked} GB/s, algbw times {factor:.4g}, not {given}.")


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * abs(b)
