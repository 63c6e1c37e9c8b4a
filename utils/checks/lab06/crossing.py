"""What an answer puts on the link between nodes, from the record: kind, group and bytes of each operation.

A node sends across what the rings of its operations send over its border (`Place.leaving`). No clock is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from utils.checks.lab06.places import Place
from utils.checks.verdict import Mistake
from utils.runtime.recorder import Op

TOLERANCE = 0.01
SMALL = 64  # bytes for a flag or a count
GATHERS = ("all_gather", "broadcast", "gather", "scatter")


def judge_gathers(place: Place, by_rank: Sequence[Sequence[Op]], where: str = "") -> None:
    """Raise Mistake if weights are gathered in a group that lies on several nodes."""
    for rank, ops in enumerate(by_rank):
        for op in ops:
            if op.kind in GATHERS and op.bytes > SMALL and place.crosses(op):
                raise Mistake(
                    f"{where}the weights are gathered across nodes: rank {rank} issues {op.kind} of {op.bytes} B in "
                    f"the group {list(op.ranks)}, and the ranks on its node are {list(place.shard_ranks(rank))}. "
                    "Gather in the shard group."
                )


def judge_crossing(place: Place, by_rank: Sequence[Sequence[Op]], size: float, law: float, where: str = "") -> None:
    """Raise Mistake if a node sends more to the others than `law`, saying what. size: bytes of all gradients, S."""
    sent = max(place.across(by_rank))
    if sent <= law * (1 + TOLERANCE) + SMALL:
        return
    start = (
        f"{where}the numbers are right, but a node sends {sent / size:.2f} S to the others, by the ring's rules, where "
        f"2 (R - 1)/R S, {law / size:.2f} S, are enough."
    )
    for rank, ops in enumerate(by_rank):
        for op in ops:
            if op.kind in ("reduce_scatter", "all_to_all") and place.crosses(op):
                raise Mistake(
                    f"{start} The reduce-scatter runs across nodes, in the group {list(op.ranks)}: it belongs in the "
                    f"shard group, {list(place.shard_ranks(rank))}."
                )
    reducing = [(number, op) for ops in by_rank[:1] for number, op in enumerate(ops) if op.kind == "all_reduce"]
    crossing = [(number, op) for number, op in reducing if place.crosses(op)]
    scattered = [number for number, op in enumerate(by_rank[0]) if op.kind == "reduce_scatter"]
    if crossing and tuple(range(place.ranks)) == crossing[0][1].ranks:
        raise Mistake(
            f"{start} The whole gradient crosses, in an all-reduce among all {place.ranks} ranks: reduce-scatter it on "
            "the node, and all-reduce the shard alone, in the replica group."
        )
    if crossing and scattered and crossing[0][0] < scattered[0]:
        raise Mistake(
            f"{start} The all-reduce comes before the reduce-scatter, so that whole gradients cross: reduce-scatter "
            "first, then a rank has only its shard to all-reduce."
        )
    for op in by_rank[0]:
        if op.kind == "all_gather" and place.crosses(op):
            raise Mistake(
                f"{start} An all_gather runs in the group {list(op.ranks)}: every slice travels to every rank of it. "
                "An all-reduce adds the slices up on their way."
            )
    if crossing:
        raise Mistake(
            f"{start} An all-reduce of {crossing[0][1].bytes} B runs in the group {list(crossing[0][1].ranks)}: "
            "the whole gradient crosses, or crosses more than once. All-reduce each shard once."
        )
    raise Mistake(start)


def judge_shares(place: Place, by_rank: Sequence[Sequence[Op]], size: float, law: float) -> None:
    """Raise Mistake if one rank sends to other nodes what all on its node are to send, a G-th each."""
    for rank, ops in enumerate(by_rank):
        sent = sum(place.leaving(op, rank) for op in ops)
        if sent > law / place.per_node * (1 + TOLERANCE) + SMALL:
            raise Mistake(
                f"the numbers are right, but rank {rank} sends {sent / size:.2f} S of the {law / size:.2f} S that its "
                f"node sends to the others: whole gradients cross through one rank, and its neighbours wait. Between "
                f"nodes each of the {place.per_node} ranks sends its own slice, {law / place.per_node / size:.2f} S."
            )
