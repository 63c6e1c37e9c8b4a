"""03.ring_or_tree: which algorithm is faster, for a size, a number of ranks and a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.theory.links import AlphaBeta, collective_seconds
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
    """From 1 B to 1 GiB, on each link."""
    return tuple(Question(2**power, n, link) for link in LINKS for n in WORLD_SIZES for power in range(0, 31, 2))


def verify(answer: Any) -> str:
    asked = questions()
    got = run_cases(answer, {"choices": observe}, 1)["choices"][0].value
    judge(asked, got)
    return (
        f"the faster of ring and tree for {len(asked)} cases: 1 B to 1 GiB, on {len(WORLD_SIZES)} numbers of ranks "
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
    if all(q.world_size & (q.world_size - 1) for q, _ in wrong):
        raise Mistake(
            f"{_told(*wrong[0])} It is right where N is a power of two: the tree needs log2 N rounds, rounded up, for "
            "any other N."
        )
    if all(choice == "tree" for _, choice in wrong):
        raise Mistake(
            f"{_told(*wrong[0])} The ring comes out too slow, or the tree too fast: a tree sends S each round."
        )
    if all(choice == "ring" for _, choice in wrong):
        raise Mistake(
            f"{_told(*wrong[0])} The tree comes out too slow, or the ring too fast: count the ring's 2(N-1) steps."
        )
    raise Mistake(_told(*wrong[0]))


def _told(question: Question, choice: str) -> str:
    return (
        f"for {format_bytes(question.size)} on {question.world_size} ranks, alpha {question.link.alpha:g} s and beta "
        f"{question.link.beta:g} s/B, the answer is {choice!r}: the ring takes {question.ring:.3g} s and the tree "
        f"{question.tree:.3g} s."
    )
