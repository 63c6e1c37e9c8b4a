"""06.shard_size: the group that fits in memory and keeps the link between nodes busy for the shortest time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake
from utils.theory.hybrid import shard_sizes
from utils.theory.memory import model_states
from utils.theory.traffic import step_bytes
from utils.theory.units import GB


@dataclass(frozen=True)
class Choice:
    """What is asked: the arguments of `shard_size`. memory in bytes, goodput in bytes/s, latency in seconds."""

    parameters: float
    nodes: int
    per_node: int
    memory: float
    goodput: float
    latency: float

    @property
    def words(self) -> str:
        return (
            f"{self.parameters / 1e9:g}e9 parameters, {self.nodes} nodes of {self.per_node}, {self.memory / GB:g} GB, "
            f"{self.goodput / GB:g} GB/s, {1e3 * self.latency:g} ms"
        )

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.parameters, self.nodes, self.per_node, self.memory, self.goodput, self.latency

    @property
    def sizes(self) -> list[int]:
        return shard_sizes(self.nodes, self.per_node)

    def held(self, size: int) -> float:
        return model_states(self.parameters, self.nodes * self.per_node, "hsdp", size).total

    def fitting(self) -> list[int]:
        return [size for size in self.sizes if self.held(size) <= self.memory]

    def across(self, size: int) -> float:
        """Bytes that each node sends across in a step."""
        return step_bytes(self.parameters, "hsdp", self.nodes * self.per_node, size, self.nodes, 2).across

    def steps(self, size: int) -> int:
        """Steps of the rings that cross between nodes."""
        if self.nodes == 1:
            return 0
        replicas = self.nodes * self.per_node // size
        return 2 * (replicas - 1) + (3 * (size - 1) if size > self.per_node else 0)

    def seconds(self, size: int) -> float:
        return self.across(size) / self.goodput + self.steps(size) * self.latency


def best(choice: Choice) -> int | None:
    """The group that fits and needs the link for the shortest time; of equals the largest; None if none fits."""
    return min(choice.fitting(), key=lambda size: (choice.seconds(size), -size), default=None)


_US = 1e-6
CASES = (
    Choice(7e9, 8, 8, 80 * GB, 50 * GB, 32 * 10 * _US),
    Choice(7e9, 8, 8, 12 * GB, 50 * GB, 32 * 10 * _US),  # no group of a node fits
    Choice(70e9, 128, 8, 60 * GB, 50 * GB, 80 * 10 * _US),
    Choice(70e9, 128, 8, 60 * GB, 400 * GB, 80 * 10 * _US),
    Choice(70e9, 128, 8, 60 * GB, 12.5 * GB, 80 * _US),
    Choice(1.3e9, 4, 4, 16 * GB, 1 * GB, 0.01),
    Choice(70e9, 2, 8, 60 * GB, 50 * GB, 1e-3),  # none fits
    Choice(13e9, 1, 8, 80 * GB, 50 * GB, 1e-3),  # one node: nothing crosses
    Choice(3e9, 6, 4, 10 * GB, 25 * GB, 0.1),  # groups of 2 and 3 nodes
    Choice(1e9, 4, 1, 8 * GB, 1 * GB, 1e-4),  # one rank on each node
)

Rule = Callable[[Choice], "int | None"]


def _fastest(choice: Choice, seconds: Callable[[int], float], sizes: list[int] | None = None) -> int | None:
    return min(choice.fitting() if sizes is None else sizes, key=lambda size: (seconds(size), -size), default=None)


def _by_all_ranks(choice: Choice) -> int | None:
    fits = 16 * choice.parameters / (choice.nodes * choice.per_node) <= choice.memory
    return _fastest(choice, choice.seconds, choice.sizes if fits else [])


def _bytes_of_replicas(choice: Choice, size: int) -> float:
    replicas = choice.nodes * choice.per_node // size
    return 2 * (replicas - 1) / replicas * 2 * choice.parameters


def _gathers_everywhere(choice: Choice, size: int) -> float:
    """Gathers counted as crossing, also those of a group within a node."""
    inside = 0 if choice.nodes == 1 or size > choice.per_node else 3 * (size - 1) / size * 2 * choice.parameters
    return (choice.across(size) + inside) / choice.goodput + choice.steps(size) * choice.latency


# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        _by_all_ranks,
        "the memory is counted as 16Ψ/N: states are shared out among the G ranks of a group, not among all N.",
    ),
    (
        lambda c: _fastest(c, c.seconds, c.sizes),
        "the memory is not looked at: a group fits if 16Ψ/G is at most `memory`.",
    ),
    (
        lambda c: min(c.fitting(), default=None),
        "the smallest group that fits is taken, whatever the link needs for it.",
    ),
    (
        lambda c: max(c.fitting(), default=None),
        "the largest group that fits is taken: it holds least, but its gathers cross, and its rings are the longest.",
    ),
    (
        lambda c: _fastest(c, lambda g: c.across(g)),
        "the latency is left out: a ring of n ranks takes n - 1 steps, and each costs `latency`.",
    ),
    (
        lambda c: _fastest(c, lambda g: c.steps(g)),
        "the bytes are left out: they take their time on the link, bytes over `goodput`.",
    ),
    (
        lambda c: _fastest(c, lambda g: _bytes_of_replicas(c, g) / c.goodput + c.steps(g) * c.latency),
        "a group of several nodes is counted as if its gathers stayed inside: 3 (G - 1)/G S cross as well.",
    ),
    (
        lambda c: _fastest(c, lambda g: _gathers_everywhere(c, g)),
        "gathers inside a node are counted on the link between nodes: a group within a node sends its all-reduces.",
    ),
    (
        lambda c: _fastest(c, c.seconds, [g for g in c.fitting() if g <= c.per_node]),
        "only groups within a node are looked at: where none fits, one of several nodes may.",
    ),
)


def verify(answer: Any) -> str:
    got = run_cases(answer, {"": _observe}, 1)[""][0].value
    judge(got)
    return (
        f"for {len(CASES)} clusters, from one node to 128 of 8, it is the group that fits 16Ψ/G in the memory and "
        "keeps the link busy for the shortest time; within a node where one fits, of several nodes where none does, "
        "None where nothing fits."
    )


def _observe(answer: Any, mark: Mark) -> list[Any]:
    return [answer(*case.arguments) for case in CASES]


def judge(got: list[Any]) -> None:
    """In the notebook: raise Mistake, naming the rule that was followed, or the first case that is wrong."""
    wanted = [best(case) for case in CASES]
    if got == wanted:
        return
    if all(each is None for each in got):
        raise Mistake("your function returns nothing, for every cluster; return the size of the group.")
    for rule, words in WRONG:
        if got == [rule(case) for case in CASES]:
            raise Mistake(words)
    case, found, right = next((c, g, w) for c, g, w in zip(CASES, got, wanted, strict=True) if g != w)
    raise Mistake(f"{case.words}: your answer is {found!r}, and {_reason(case, found, right)}")


def _reason(case: Choice, found: Any, right: int | None) -> str:
    if found is None:
        return f"a group of {right} fits: it holds {case.held(right) / GB:.1f} GB."
    if isinstance(found, bool) or not isinstance(found, int | float) or found not in case.sizes:
        return f"the groups to choose from are {', '.join(map(str, case.sizes))}."
    if found not in case.fitting():
        return f"16Ψ/{found} are {case.held(found) / GB:.1f} GB: that does not fit."
    return (
        f"a group of {right} keeps the link busy for {case.seconds(right):.3g} s "
        f"({case.across(right) / GB:.3g} GB, {case.steps(right)} steps), yours for {case.seconds(found):.3g} s "
        f"({case.across(found) / GB:.3g} GB, {case.steps(found)} steps). Of equals the largest holds the least."
    )
