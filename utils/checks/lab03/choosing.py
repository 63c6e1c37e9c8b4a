"""03.ring_or_tree: which algorithm is faster, for a size, a number of ranks and a link."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.theory.links import AlphaBeta, collective_seconds
from utils.theory.ring import ring_cost
from utils.theory.units import format_bytes

WORLD_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 33, 64, 100, 1000)
LINKS = (AlphaBeta(5e-3, 8e-9), AlphaBeta(20e-6, 1 / 50e9), AlphaBeta(1e-3, 8e-8))
NEAR = 0.02  # where the two differ by less, either choice is right


@dataclass(frozen=True)
class Question:
    size: int
    world_size: int
    link: AlphaBeta

    @property
    def ring(self) -> float:
        """Seconds of the ring."""
        return collective_seconds("all_reduce", self.size, self.world_size, self.link, "ring")

    @property
    def tree(self) -> float:
        """Seconds of the tree that hands the whole tensor on in each round."""
        return collective_seconds("all_reduce", self.size, self.world_size, self.link, "binomial")

    @property
    def wanted(self) -> str:
        """The faster one; empty where they are about equal."""
        if abs(self.ring - self.tree) < NEAR * min(self.ring, self.tree):
            return ""
        return "ring" if self.ring < self.tree else "tree"


def questions() -> tuple[Question, ...]:
    """From 1 B to 1 GiB, and a tenth below and above the size at which both take the same time, on each link."""
    return tuple(Question(size, n, link) for link in LINKS for n in WORLD_SIZES for size in _sizes(n, link))


def _sizes(ranks: int, link: AlphaBeta) -> list[int]:
    crossover = ring_cost(1, ranks, link).crossover or 0
    around = [round(factor * crossover) for factor in (0.9, 1.1)] if crossover > 10 else []
    return [2**power for power in range(0, 31, 2)] + around


def verify(answer: Any) -> str:
    asked = questions()
    got = run_cases(answer, {"choices": observe}, 1)["choices"][0].value
    judge(asked, got)
    return (
        f"the faster of ring and tree for {len(asked)} cases: 1 B to 1 GiB, also 10% off the crossover, on "
        f"{len(WORLD_SIZES)} numbers of ranks "
        f"from {WORLD_SIZES[0]} to {WORLD_SIZES[-1]}, over three links."
    )


def observe(answer: Any, mark: Mark) -> list[str]:
    """In a rank: the answer's choice for each question."""
    return [str(answer(q.size, q.world_size, q.link.alpha, q.link.beta)) for q in questions()]


def judge(asked: tuple[Question, ...], got: list[str]) -> None:
    for choice in got:
        if choice not in ("ring", "tree"):
            raise Mistake(f"the function returns {choice!r}; return 'ring' or 'tree'.")
    if len(set(got)) == 1:
        raise Mistake(f"the answer is always {got[0]!r}; small messages on many ranks and large ones differ.")
    wrong = [(q, choice) for q, choice in zip(asked, got, strict=True) if q.wanted and choice != q.wanted]
    if not wrong:
        return
    if len(wrong) == sum(bool(q.wanted) for q in asked):
        raise Mistake("each choice is the slower one of the two: compare the other way round.")
    for said, seconds in _SUSPECTS:
        if all(choice in _faster(*seconds(q)) for q, choice in zip(asked, got, strict=True)):
            raise Mistake(f"{_told(*wrong[0])} {said}")
    if all(choice == "tree" for _, choice in wrong):
        raise Mistake(
            f"{_told(*wrong[0])} The ring comes out too slow, or the tree too fast: the tree sends S in each round, in "
            "log2 N rounds up, rounded up, and as many down."
        )
    if all(choice == "ring" for _, choice in wrong):
        raise Mistake(
            f"{_told(*wrong[0])} The tree comes out too slow, or the ring too fast: count the ring's 2(N-1) steps, "
            "each with an alpha of its own, and the tree's rounds."
        )
    raise Mistake(_told(*wrong[0]))


def _faster(ring: float, tree: float) -> tuple[str, ...]:
    """The faster one; both where rounding decides."""
    if math.isclose(ring, tree):
        return "ring", "tree"
    return ("ring",) if ring < tree else ("tree",)


def _of(question: Question, steps: float, sent: float, rounds: float, handed_on: float) -> tuple[float, float]:
    """Seconds of a ring and a tree with these numbers of messages, and bytes in each."""
    link = question.link
    return steps * (link.alpha + link.beta * sent), rounds * (link.alpha + link.beta * handed_on)


def _law(question: Question) -> tuple[float, float, float, float]:
    """steps, bytes in each; rounds, bytes in each."""
    n, size = question.world_size, question.size
    return 2 * (n - 1), size / n, 2 * (n - 1).bit_length(), size


def _with(place: int, of_question: Callable[[Question], float]) -> Callable[[Question], tuple[float, float]]:
    """The law with one of its four numbers replaced."""

    def seconds(question: Question) -> tuple[float, float]:
        law = list(_law(question))
        law[place] = of_question(question)
        return _of(question, *law)

    return seconds


_UP = "The tree needs log2 N rounds, rounded up"
# What is said, and the seconds of ring and tree that lead to exactly the choices that were made.
_SUSPECTS: tuple[tuple[str, Callable[[Question], tuple[float, float]]], ...] = (
    (
        f"{_UP}: `N.bit_length()` is one more where N is a power of two; `(N - 1).bit_length()` is right.",
        _with(2, lambda q: 2 * q.world_size.bit_length()),
    ),
    (f"{_UP}: yours are rounded down.", _with(2, lambda q: 2 * (q.world_size.bit_length() - 1))),
    (f"{_UP}: yours are not whole.", _with(2, lambda q: 2 * math.log2(q.world_size))),
    (
        "The tree's rounds lead up and down again: rank 0 has the sum after half of them.",
        _with(2, lambda q: (q.world_size - 1).bit_length()),
    ),
    ("The ring goes around twice: 2(N-1) steps.", _with(0, lambda q: q.world_size - 1)),
    ("The ring takes 2(N-1) steps, not 2N.", _with(0, lambda q: 2 * q.world_size)),
    ("A step of the ring moves S/N bytes, not S.", _with(1, lambda q: q.size)),
    ("A round of the tree moves all S bytes, not a part.", _with(3, lambda q: q.size / q.world_size)),
    (
        "The ring sends 2(N-1)/N S, which is 2 S for large N alone.",
        _with(1, lambda q: q.size / (q.world_size - 1)),
    ),
)


def _told(question: Question, choice: str) -> str:
    return (
        f"for {format_bytes(question.size)} on {question.world_size} ranks, alpha {question.link.alpha:g} s and beta "
        f"{question.link.beta:g} s/B, the answer is {choice!r}: the ring takes {question.ring:.3g} s and the tree "
        f"{question.tree:.3g} s."
    )
