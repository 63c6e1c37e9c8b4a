"""What an operation puts on the links of the nodes, and how often in a row it crosses from node to node.

By the ring's rules (`theory.traffic`), also where gloo moves something else: its reduce-scatter is charged as a ring's,
its broadcast not as a tree. Each rank sends along these edges, evenly where it has several:

- all_reduce, all_gather, reduce_scatter, barrier: to the next rank of the group, the last one to the first;
- broadcast, reduce: to the next rank, from the root to the one before it, from the one after the root to the root;
- scatter, gather, all_to_all, send: straight to the rank that shall have it, all at the same time.

Nodes have one link each, which all their ranks share. What stays inside a node is on no link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from utils.theory.sharing import ring_steps
from utils.theory.traffic import collective_bytes

_AROUND = ("all_reduce", "all_gather", "reduce_scatter", "barrier")


@dataclass(frozen=True)
class Load:
    """shares: (direction of a link, bytes on it as a part of S); `outward(node)` and `inward(node)` name directions.

    crossings: how many transfers from node to node follow one another on the longest way, each of which takes the
    latency once.
    """

    shares: tuple[tuple[int, float], ...]
    crossings: int


def outward(node: int) -> int:
    """The direction from a node to the switch."""
    return 2 * node


def inward(node: int) -> int:
    """The direction from the switch to a node."""
    return 2 * node + 1


@cache
def load(kind: str, nodes: tuple[int, ...], root: int = 0) -> Load:
    """The load of one operation of `kind`.

    nodes: where each member of the group lives, in the group's order; for "send" and "recv" the sender's node and the
        receiver's. root: a member's place in the group.
    """
    if kind in ("send", "recv"):
        kind, root = "send", 0
    edges = list(_edges(kind, len(nodes), root))
    shares: dict[int, float] = {}
    for source, target in edges:
        if nodes[source] != nodes[target]:
            branches = sum(other == source for other, _ in edges)
            share = collective_bytes(kind, 1, len(nodes), rank=source, root=root) / branches
            for direction in (outward(nodes[source]), inward(nodes[target])):
                shares[direction] = shares.get(direction, 0.0) + share
    crosses = [nodes[source] != nodes[target] for source, target in edges]
    return Load(tuple(shares.items()), _crossings(kind, crosses))


def _edges(kind: str, n: int, root: int) -> Iterator[tuple[int, int]]:
    """(sender, receiver) by place in the group; along the ring in the order in which a message travels."""
    places = [(root + step) % n for step in range(n)]  # from the root on
    if n == 1:
        return
    if kind in _AROUND:
        yield from ((place, (place + 1) % n) for place in range(n))
    elif kind == "broadcast":
        yield from pairwise(places)
    elif kind == "reduce":
        yield from pairwise([*places[1:], root])
    elif kind == "scatter":
        yield from ((root, place) for place in places[1:])
    elif kind == "gather":
        yield from ((place, root) for place in places[1:])
    elif kind == "send":
        yield 0, 1
    else:
        yield from ((source, target) for source in range(n) for target in range(n) if source != target)


def _crossings(kind: str, crosses: list[bool]) -> int:
    if kind in ("broadcast", "reduce"):
        return sum(crosses)
    if kind not in _AROUND or not crosses:
        return int(any(crosses))
    n = len(crosses)
    # A barrier is charged as an all-reduce of nothing. What travels furthest passes `steps` edges in a row.
    steps = ring_steps("all_reduce" if kind == "barrier" else kind, n)
    return max(sum(crosses[(first + step) % n] for step in range(steps)) for first in range(n))
