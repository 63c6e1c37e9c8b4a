"""03.fit_alpha_beta: two numbers from measured times, over sizes that span a factor of a million."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from utils.checks.lab03.numbers import apart, pair_of
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.theory.units import GiB, KiB

Point = tuple[float, float]  # bytes, seconds
LINKS = ((5e-3, 8e-9), (20e-6, 1 / 50e9), (1e-3, 8e-8))  # alpha in seconds, beta in seconds per byte
NOISE, WITHIN = 0.05, 0.1
ENDS, BETWEEN, OF_ALL = 0.05, 0.005, 0.04  # both ends 5% slow, small errors between: a fit of all sizes is within 4%
_SIZES = tuple(KiB * 2**power for power in range(0, 21, 2))
assert _SIZES[-1] == GiB


def points(alpha: float, beta: float, noise: float) -> list[Point]:
    """Times of eleven sizes from 1 KiB to 1 GiB, each off by a factor within 1 ± noise; the same at every call."""
    draw = random.Random(3)
    return [(size, (alpha + beta * size) * (1 + draw.uniform(-noise, noise))) for size in _SIZES]


def slow_ends(alpha: float, beta: float) -> list[Point]:
    """The same, but the first and the last time 5% too long and those between off by 0.5% at most."""
    first, *between, last = points(alpha, beta, BETWEEN)
    size, largest = first[0], last[0]
    slow = [(s, (1 + ENDS) * (alpha + beta * s)) for s in (size, largest)]
    return [slow[0], *between, slow[1]]


def verify(answer: Any) -> str:
    for noise, within in ((0.0, 1e-6), (NOISE, WITHIN), (None, OF_ALL)):
        got = run_cases(answer, {"fits": Observe(noise)}, 1)["fits"][0].value
        for (alpha, beta), pair in zip(LINKS, got, strict=True):
            judge(alpha, beta, pair, noise, within)
    return (
        "alpha and beta of three links from times of 11 sizes, 1 KiB to 1 GiB: exact from exact times, within 10% "
        "from times that are off by up to 5%, and within 4% where only the first and the last are."
    )


class Observe:
    """In a rank: what the answer makes of the times of each link. noise: None for slow ends."""

    def __init__(self, noise: float | None) -> None:
        self.noise = noise

    def __call__(self, answer: Any, mark: Mark) -> Sequence[tuple[float, float] | str]:
        noise = self.noise
        return [
            pair_of(answer(slow_ends(alpha, beta) if noise is None else points(alpha, beta, noise)))
            for alpha, beta in LINKS
        ]


def judge(alpha: float, beta: float, got: tuple[float, float] | str, noise: float | None, within: float) -> None:
    """Raise Mistake unless both numbers are `within` of what they are. noise: None for slow ends."""
    if isinstance(got, str):
        raise Mistake(f"the function returns {got}; return a pair of numbers, `alpha, beta`.")
    a, b = got
    if _near(a, alpha, within) and _near(b, beta, within):
        return
    if noise is None:
        name, value, wanted = ("alpha", a, alpha) if not _near(a, alpha, within) else ("beta", b, beta)
        raise Mistake(
            f"where the first and the last of 11 times are {ENDS:.0%} too long, and the others right, {name} comes out "
            f"{value / wanted - 1:+.1%} off: a few sizes decide alone. Fit all of them."
        )
    place = f"times of alpha = {alpha:g} s and beta = {beta:g} s/B" + (f", off by up to {noise:.0%}" if noise else "")
    if _near(a, beta, within) and _near(b, alpha, within):
        raise Mistake(f"from {place}: the two are swapped. alpha, in seconds, comes first.")
    if _near(b, 1 / beta, within):
        raise Mistake(f"from {place}: the second number is the bandwidth, 1 / beta. beta is seconds per byte.")
    if noise and _near(b, beta, within):
        raise Mistake(
            f"from {place}: alpha comes out as {a:.2g}. The largest sizes take seconds, and an error of 5% of that is "
            "far more than alpha: fit the relative errors, that is, divide each equation by its time."
        )
    if a == 0:
        raise Mistake(f"from {place}: alpha is 0. It is what a message takes besides its bytes: fit both numbers.")
    name, value, wanted = ("alpha", a, alpha) if not _near(a, alpha, within) else ("beta", b, beta)
    told, asked = apart(value, wanted)
    times = "" if abs(value / wanted - 1) < 0.01 else f", {value / wanted:.2f} times what it is"
    raise Mistake(f"from {place}: {name} comes out as {told}, not {asked}{times}.")


def _near(value: float, wanted: float, within: float) -> bool:
    return abs(value - wanted) <= within * abs(wanted)
