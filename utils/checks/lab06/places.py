"""Nodes with ranks on them: who shares a copy of the model with whom, and what of an operation leaves a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch.distributed as dist

from utils.runtime.recorder import POINT_TO_POINT, Op
from utils.theory.traffic import step_bytes

DEADLINE = 120.0  # seconds for the cases of one launch, on a machine with other work; a deadlock is told at once


@dataclass(frozen=True)
class Place:
    """`nodes` nodes of `per_node` ranks, neighbours in rank order."""

    nodes: int
    per_node: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def name(self) -> str:
        """Such as "2 nodes of 2 ranks"."""
        return f"{counted(self.nodes, 'node')} of {counted(self.per_node, 'rank')}"

    def node_of(self, rank: int) -> int:
        return rank // self.per_node

    def shard_ranks(self, rank: int) -> tuple[int, ...]:
        """Those on the rank's node: together they hold one copy of the model."""
        first = self.node_of(rank) * self.per_node
        return tuple(range(first, first + self.per_node))

    def replica_ranks(self, rank: int) -> tuple[int, ...]:
        """One on each node: they hold the same part."""
        return tuple(range(rank % self.per_node, self.ranks, self.per_node))

    def crosses(self, op: Op) -> bool:
        """Whether its ranks lie on several nodes."""
        return len({self.node_of(rank) for rank in op.ranks}) > 1

    def leaving(self, op: Op, rank: int) -> float:
        """Bytes that this rank sends to another node, in a ring in the order of the ranks; of a send, to its peer."""
        if op.kind in POINT_TO_POINT:
            to = op.peer if op.kind == "send" and op.peer is not None else rank
        else:
            to = op.ranks[(op.ranks.index(rank) + 1) % len(op.ranks)]
        return op.ring_bytes if self.node_of(to) != self.node_of(rank) else 0.0

    def across(self, by_rank: Sequence[Sequence[Op]]) -> list[float]:
        """Bytes that each node sends to the others, given the operations of each rank."""
        sent = [0.0] * self.nodes
        for rank, ops in enumerate(by_rank):
            sent[self.node_of(rank)] += sum(self.leaving(op, rank) for op in ops)
        return sent

    def law(self, size: float, micro_batches: int = 1) -> float:
        """Bytes that each node sends to the others in a step of HSDP, of `size` bytes of gradients."""
        step = step_bytes(size, "hsdp", self.ranks, self.per_node, self.nodes, 1, micro_batches)
        return step.across


@cache
def groups_of(place: Place) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """In a rank: its shard group and its replica group, made once."""
    rank = dist.get_rank()
    shard = [dist.new_group(list(place.shard_ranks(first))) for first in range(0, place.ranks, place.per_node)]
    replica = [dist.new_group(list(place.replica_ranks(each))) for each in range(place.per_node)]
    return shard[place.node_of(rank)], replica[rank % place.per_node]


def counted(number: int, noun: str) -> str:
    """Such as "1 node", "2 nodes"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
