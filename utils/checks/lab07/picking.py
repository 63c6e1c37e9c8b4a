"""07.pick_algorithm: ring or tree over nodes, by the time of their messages and of their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.shut import answers_to, shut_to_answers
from utils.checks.verdict import Mistake
from utils.theory.units import GB, KiB, format_bytes

CHOICES = ("ring", "tree")
TREE_RATE = 0.92  # of `goodput` that a tree reaches, by NCCL's own reckoning (src/graph/tuning.cc)
NEAR = 0.02  # where the two differ by less, either choice is right


@dataclass(frozen=True)
class Fabric:
    """nodes of per_node ranks. inside, across: seconds of a message. goodput: bytes per second that leave a rank."""

    nodes: int
    per_node: int
    inside: float
    across: float
    goodput: float

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def rounds(self) -> int:
        return (self.nodes - 1).bit_length()


@dataclass(frozen=True)
class Law:
    """Numbers of a ring and a tree: messages inside and across, one after the other, and bytes in units of S."""

    ring_inside: float
    ring_across: float
    ring_bytes: float
    tree_inside: float
    tree_across: float
    tree_bytes: float

    def seconds(self, fabric: Fabric, size: float) -> tuple[float, float]:
        """(ring, tree)."""
        f = fabric
        ring = self.ring_inside * f.inside + self.ring_across * f.across + self.ring_bytes * size / f.goodput
        tree = self.tree_inside * f.inside + self.tree_across * f.across + self.tree_bytes * size / f.goodput
        return ring, tree


@shut_to_answers
def law(fabric: Fabric) -> Law:
    n, nodes, each = fabric.ranks, fabric.nodes, fabric.per_node
    return Law(2 * (n - nodes), 2 * (nodes - 1), 2 * (n - 1) / n, 2 * (each - 1), 2 * fabric.rounds, 2 / TREE_RATE)


_US = 1e-6
_FIVE = Fabric(5, 1, 1 * _US, 20 * _US, 12 * GB)
FABRICS = (
    Fabric(1, 8, 0.6 * _US, 5 * _US, 370 * GB),
    Fabric(2, 8, 0.6 * _US, 5 * _US, 48 * GB),
    Fabric(3, 4, 1 * _US, 20 * _US, 12 * GB),
    Fabric(16, 8, 3.4 * _US, 14 * _US, 48 * GB),
    Fabric(100, 8, 1 * _US, 10 * _US, 25 * GB),
    Fabric(128, 8, 2 * _US, 12 * _US, 48 * GB),
    Fabric(8, 1, 1 * _US, 0.04, 12.4e6),
    Fabric(33, 2, 5 * _US, 30 * _US, 5 * GB),
    Fabric(2, 2, 10 * _US, 10 * _US, 12 * GB),  # where one message inside more or less decides
    _FIVE,
)
# Where log2 5 that is not rounded up, and one that is rounded down, choose otherwise; in bytes.
_FEW_ROUNDS = tuple(round(factor * _FIVE.across * _FIVE.goodput) for factor in (5, 6.4))
SIZES = tuple(2**power for power in range(10, 35, 2))


def crossover(fabric: Fabric) -> float:
    """S above which the ring is faster; 0 if it always is."""
    numbers = law(fabric)
    ring, tree = numbers.seconds(fabric, 0)
    more = (numbers.tree_bytes - numbers.ring_bytes) / fabric.goodput
    return max(0.0, (ring - tree) / more)


def questions() -> tuple[tuple[Fabric, int], ...]:
    """From 1 KiB to 8 GiB, and a quarter below and above the size at which both take the same time."""
    found = []
    for fabric in FABRICS:
        at = crossover(fabric)
        around = [round(factor * at) for factor in (0.75, 1.25)] if at > KiB else []
        found += [(fabric, size) for size in sorted({*SIZES, *around, *(_FEW_ROUNDS if fabric == _FIVE else ())})]
    return tuple(found)


def right(fabric: Fabric, size: int) -> tuple[str, ...]:
    """The choices that are right."""
    return _faster(law(fabric).seconds(fabric, size), NEAR)


def _faster(seconds: tuple[float, float], within: float = 1e-9) -> tuple[str, ...]:
    if math.isclose(*seconds, rel_tol=within):
        return CHOICES
    return ("ring",) if seconds[0] < seconds[1] else ("tree",)


def _with(**changed: Callable[[Fabric], float]) -> Callable[[Fabric], Law]:
    """The law with some of its numbers replaced."""
    return lambda fabric: Law(**vars(law(fabric)) | {name: of(fabric) for name, of in changed.items()})


# Numbers that somebody may have used -> what is wrong with them.
WRONG: tuple[tuple[Callable[[Fabric], Law], str], ...] = (
    (
        _with(ring_bytes=lambda f: 0, tree_bytes=lambda f: 0),
        "the bytes are left out, or the tree's are too few: it sends 2 S, up and down, at 0.92 of `goodput`, the ring "
        "2 (N - 1)/N S at all of it.",
    ),
    (
        _with(ring_inside=lambda f: 0, ring_across=lambda f: 0, tree_inside=lambda f: 0, tree_across=lambda f: 0),
        "the messages' own time is left out: a ring of N ranks waits for 2 (N - 1) of them, one after the other.",
    ),
    (
        _with(tree_bytes=lambda f: 2 * TREE_RATE),
        "the tree's 2 S are multiplied by 0.92: at 0.92 of `goodput` they take longer: divide by 0.92.",
    ),
    (
        _with(tree_across=lambda f: 2 * math.log2(f.nodes)),
        "log2 R is not rounded up: among 5 nodes there are 3 rounds, `(nodes - 1).bit_length()`.",
    ),
    (
        _with(tree_across=lambda f: 2 * math.ceil(math.log(f.nodes))),
        "`math.log` is the natural logarithm: the rounds are log2 R, rounded up, `(nodes - 1).bit_length()`.",
    ),
    (
        _with(tree_across=lambda f: f.rounds),
        "the tree leads up and down again: 2 log2 R messages between nodes, not log2 R.",
    ),
    (
        _with(tree_across=lambda f: 2 * (f.nodes.bit_length() - 1)),
        "the tree's rounds are rounded down: among 3 nodes there are 2, `(nodes - 1).bit_length()`.",
    ),
    (
        _with(tree_across=lambda f: 2 * f.nodes.bit_length()),
        "the tree has a round too many where R is a power of two: `(nodes - 1).bit_length()` is log2 R, rounded up.",
    ),
    (
        _with(tree_across=lambda f: 2 * (f.ranks - 1).bit_length(), tree_inside=lambda f: 0),
        "the tree is among all N ranks, each step between nodes. Inside a node ranks pass on in a chain, 2 (G - 1) "
        "messages of `inside`; among the R nodes it is a tree.",
    ),
    (
        _with(ring_inside=lambda f: 0, ring_across=lambda f: 2 * (f.ranks - 1)),
        "every step of the ring is counted as one between nodes: neighbours are mostly on one node, and only 2 (R - 1) "
        "of 2 (N - 1) steps cross.",
    ),
    (
        _with(ring_across=lambda f: f.nodes - 1, ring_inside=lambda f: f.ranks - f.nodes),
        "the ring goes around once: an all-reduce goes around twice, 2 (N - 1) steps.",
    ),
    (
        _with(tree_bytes=lambda f: 2 / TREE_RATE * max(1, f.rounds)),
        "the tree is counted as if each round passed the whole buffer on before the next. It is cut in pieces that "
        "flow through all levels at once: 2 S, not 2 S log2 R.",
    ),
    (
        _with(tree_bytes=lambda f: 2 / TREE_RATE * f.rounds),
        "the tree is counted as if each round passed the whole buffer on before the next, and nothing on one node. "
        "Pieces flow through all levels at once: 2 S, not 2 S log2 R.",
    ),
    (
        _with(tree_inside=lambda f: 0),
        "the tree's way inside the nodes is left out: a chain of G ranks passes on G - 1 times, up and down again.",
    ),
    (
        _with(tree_inside=lambda f: f.per_node - 1),
        "the chain inside a node is counted once: up it goes and down again, 2 (G - 1) messages.",
    ),
    (
        _with(tree_inside=lambda f: 2 * f.per_node),
        "the chain inside a node is counted with G messages each way: among G ranks there are G - 1.",
    ),
    (
        _with(tree_inside=lambda f: 2 * (f.per_node - 1).bit_length()),
        "inside a node the tree is counted as a tree: there ranks pass on in a chain, 2 (G - 1) messages.",
    ),
    (
        _with(ring_inside=lambda f: 2 * (f.ranks - 1)),
        "all of the ring's 2 (N - 1) steps are counted inside, and those across once more: 2 (N - R) stay inside.",
    ),
    (
        _with(ring_inside=lambda f: 2 * (f.per_node - 1)),
        "ring and tree are counted with as many messages inside: the ring goes through all R nodes, with 2 (N - R) "
        "messages; the tree's chains pass on in all nodes at once, 2 (G - 1).",
    ),
    (
        _with(ring_inside=lambda f: 0),
        "the ring's steps inside the nodes are left out: 2 (N - R) of `inside` seconds.",
    ),
    (
        _with(ring_across=lambda f: 2 * f.nodes),
        "the ring is counted with 2 R steps across: 2 (R - 1) of its 2 (N - 1) steps, one after the other, cross.",
    ),
    (
        _with(tree_bytes=lambda f: 2.0),
        "the tree's 2 S are counted at all of `goodput`: it reaches 0.92 of that.",
    ),
    (
        _with(ring_bytes=lambda f: 2 * (f.ranks - 1) / f.ranks / TREE_RATE),
        "the ring is counted at 0.92 of `goodput` too: that is the tree's alone.",
    ),
    (
        _with(ring_bytes=lambda f: 2.0),
        "the ring is counted with 2 S. Its own part a rank does not send: 2 (N - 1)/N S.",
    ),
)


def verify(answer: Any) -> str:
    asked = questions()
    judge(asked, run_cases(answer, {"": observe}, 1)[""][0].value)
    return (
        f"the faster of ring and tree for {len(asked)} cases: {format_bytes(SIZES[0])} to {format_bytes(SIZES[-1])}, "
        "also 25% off the crossover, on 1 to 128 nodes of 1 to 8 ranks."
    )


def observe(answer: Any, mark: Mark) -> list[str]:
    """In a rank: the choice for each question."""
    asked = [(size, f.nodes, f.per_node, f.inside, f.across, f.goodput) for f, size in questions()]
    return list(map(_text, answers_to(asked, answer)))


def _text(choice: Any) -> str:
    """What is no text is marked by a line break before it: True is not 'True'."""
    return choice if isinstance(choice, str) else f"\n{choice!r}"


def judge(asked: Sequence[tuple[Fabric, int]], got: Sequence[str]) -> None:
    """In the notebook: raise Mistake, naming the number that is wrong, or the first case."""
    for choice in got:
        if choice not in CHOICES:
            shown = choice[1:] if choice.startswith("\n") else repr(choice)
            raise Mistake(f"your function returns {shown}; return 'ring' or 'tree'.")
    wrong = [(f, size, choice) for (f, size), choice in zip(asked, got, strict=True) if choice not in right(f, size)]
    if not wrong:
        return
    if all(choice not in right(f, s) or len(right(f, s)) == 2 for (f, s), choice in zip(asked, got, strict=True)):
        raise Mistake("each choice is the slower one of the two: compare the other way round.")
    for numbers, words in WRONG:
        if all(choice in _faster(numbers(f).seconds(f, size)) for (f, size), choice in zip(asked, got, strict=True)):
            raise Mistake(words)
    fabric, size, choice = wrong[0]
    ring, tree = law(fabric).seconds(fabric, size)
    raise Mistake(
        f"{format_bytes(size)} on {fabric.nodes} node{'s' * (fabric.nodes > 1)} of {fabric.per_node}, "
        f"{1e6 * fabric.inside:g} us inside, {1e6 * fabric.across:g} us across, {fabric.goodput / GB:g} GB/s: "
        f"you choose the {choice}; the ring takes {1e6 * ring:.4g} us, the tree {1e6 * tree:.4g} us."
    )
