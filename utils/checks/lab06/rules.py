"""06.shard_size: rules that somebody may have followed, each the law but for one thing, and what that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from utils.checks.lab06.choices import Choice

Rule = Callable[[Choice], "int | None"]
Sizes = Callable[[Choice], list[int]]


@dataclass(frozen=True)
class Follow:
    """The law of the time on the link, as somebody may have it; the defaults are right.

    wire: bytes for each parameter. gathers: gathers and reduce-scatters of a group of several nodes; gather_rings: the
    same where steps are counted. passes: of an all-reduce over its ring; pass_rings: the same where steps are counted.
    whole: a node all-reduces all of S, not the parts that it holds. by_nodes: a gather's ring has a step for each node.
    once: a collective pays the latency once. as_nodes: there are as many replicas as nodes. inside: gathers within a
    node are counted too. sizes: to choose from. smallest: of equally long ones.
    """

    wire: float = 2
    gathers: int = 3
    gather_rings: int = 3
    passes: int = 2
    pass_rings: int = 2
    whole: bool = False
    by_nodes: bool = False
    once: bool = False
    as_nodes: bool = False
    inside: bool = False
    sizes: Sizes = Choice.fitting
    smallest: bool = False

    def __call__(self, choice: Choice) -> int | None:
        sign = 1 if self.smallest else -1
        return min(self.sizes(choice), key=lambda size: (self.seconds(choice, size), sign * size), default=None)

    def seconds(self, choice: Choice, size: int) -> float:
        if choice.nodes == 1:
            return 0.0
        s, span = self.wire * choice.parameters, max(1, size // choice.per_node)
        replicas = choice.nodes if self.as_nodes else choice.nodes * choice.per_node // size
        sent = self.passes * (replicas - 1) / replicas * s / (1 if self.whole else span)
        steps = min(replicas - 1, 1) if self.once else self.pass_rings * (replicas - 1)
        if span > 1 or self.inside:
            sent += self.gathers * (size - 1) / size * s
        if span > 1:
            steps += self.gather_rings * (1 if self.once else (span if self.by_nodes else size) - 1)
        return sent / choice.goodput + steps * choice.latency


def _by_all_ranks(choice: Choice) -> list[int]:
    return choice.sizes if 16 * choice.parameters / (choice.nodes * choice.per_node) <= choice.memory else []


def _of(keep: Callable[[Choice, int], bool]) -> Sizes:
    """Of the groups that fit, those that are kept."""
    return lambda choice: [size for size in choice.fitting() if keep(choice, size)]


_CROSSING = (
    "a group of several nodes is counted with too few of what crosses: there are three, the weights gathered for "
    "forward, gathered again for backward, and the gradients reduce-scattered, each (G - 1)/G S in G - 1 steps."
)
_ALL_REDUCE = (
    "an all-reduce among n ranks is counted as one pass over its ring: it takes two, 2 (n - 1)/n of its bytes in "
    "2 (n - 1) steps."
)
_STEPS = "the latency is left out: a ring of n ranks takes n - 1 steps, and each costs `latency`."
# A rule that somebody may have followed -> what it leaves out.
WRONG: tuple[tuple[Rule, str], ...] = (
    (
        Follow(sizes=_by_all_ranks),
        "the memory is counted as 16Ψ/N: states are shared out among the G ranks of a group, not among all N.",
    ),
    (
        Follow(sizes=lambda choice: choice.sizes),
        "the memory is not looked at: a group fits if 16Ψ/G is at most `memory`.",
    ),
    (
        Follow(sizes=_of(lambda choice, size: choice.held(size) < choice.memory)),
        "a group whose states are exactly `memory` bytes is left out: it fits too.",
    ),
    (
        lambda choice: min(choice.fitting(), default=None),
        "the smallest group that fits is taken, whatever the link needs for it.",
    ),
    (
        lambda choice: max(choice.fitting(), default=None),
        "the largest group that fits is taken: it holds least, but its gathers cross, and its rings are the longest.",
    ),
    (
        Follow(smallest=True),
        "of equally long ones a smaller group is taken: take the largest, which holds the least.",
    ),
    (
        Follow(sizes=_of(lambda choice, size: size <= choice.per_node)),
        "only groups within a node are looked at: where none fits, one of several nodes may.",
    ),
    (
        Follow(sizes=_of(lambda choice, size: size <= choice.per_node or size == choice.nodes * choice.per_node)),
        "of the groups of several nodes only that of all ranks is looked at: m nodes make one if m divides R.",
    ),
    (
        Follow(sizes=_of(lambda choice, size: choice.nodes == 1 or size < choice.nodes * choice.per_node)),
        "the group of all ranks (FSDP) is left out: it is one to choose from.",
    ),
    (
        Follow(sizes=_of(lambda choice, size: size.bit_count() == 1)),
        "only powers of two are looked at: m whole nodes make a group for every m that divides R.",
    ),
    (Follow(gather_rings=0, pass_rings=0), _STEPS),
    (
        Follow(once=True),
        "each collective pays the latency once: a ring among n ranks pays it for each of its n - 1 steps.",
    ),
    (
        Follow(by_nodes=True),
        "the steps of a gather are counted by nodes: its ring runs through all G ranks, in G - 1 steps.",
    ),
    (
        Follow(gather_rings=0),
        "the steps of the gathers and of the reduce-scatter are left out: 3 (G - 1) where a group has several nodes.",
    ),
    (
        Follow(pass_rings=0),
        "the steps of the all-reduces are left out: 2 (N/G - 1).",
    ),
    (
        lambda choice: min(choice.fitting(), key=lambda size: (choice.steps(size), -size), default=None),
        "the bytes are left out: they take their time on the link, bytes over `goodput`.",
    ),
    (
        Follow(gathers=0, whole=True),
        "a group of several nodes is counted as if its gathers stayed inside: 3 (G - 1)/G S cross as well.",
    ),
    (
        Follow(inside=True),
        "gathers inside a node are counted on the link between nodes: a group within a node sends its all-reduces.",
    ),
    (Follow(gathers=2), _CROSSING),
    (Follow(gathers=2, gather_rings=2), _CROSSING),
    (Follow(gathers=1, gather_rings=1), _CROSSING),
    (
        Follow(whole=True),
        "in a group of several nodes each node is counted with all-reduces of all S: it holds only its ranks' parts, "
        "S/G for each, and sends all-reduces of those.",
    ),
    (
        Follow(as_nodes=True),
        "the replicas are counted as R, whatever the group: they are N/G, fewer if a group has several nodes.",
    ),
    (Follow(passes=1), _ALL_REDUCE),
    (Follow(pass_rings=1), _ALL_REDUCE),
    (Follow(passes=1, pass_rings=1), _ALL_REDUCE),
    (
        Follow(wire=4),
        "S is counted as 4Ψ, fp32: weights and gradients travel in 16 bit here, 2Ψ.",
    ),
)
