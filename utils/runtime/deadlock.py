"""Tells a deadlock from a slow run, from what ranks have issued and wait for. Pure functions.

A verdict here ends somebody's run, so it is given only when it is certain: every living rank is seen to wait, and each
operation that it waits for lacks the part of a rank that has ended or that waits itself. A transfer that is under way,
a rank that computes, a time limit that the learner has set: each of these means no verdict, and the deadline decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from utils.runtime.job import PendingOp, Place
from utils.runtime.recorder import POINT_TO_POINT, RECEIVED


def stuck(places: Mapping[int, Place], living: Collection[int], issued: Mapping[int, Mapping[str, int]]) -> bool:
    """True if no living rank can go on.

    Args:
        places: where each living rank is.
        living: ranks that have not ended.
        issued: operations issued so far, by rank and channel, of living and ended ranks.
    """
    if not living or not all(rank in places and places[rank].blocked and places[rank].pending for rank in living):
        return False
    # All living ranks wait. It is for ever if nothing that any of them waits for has all its parts.
    return all(_missing(op, rank, issued) for rank in living for op in places[rank].pending)


def _missing(op: PendingOp, rank: int, issued: Mapping[int, Mapping[str, int]]) -> set[int]:
    """Members of the operation that have not issued their part."""
    others = {op.peer} if op.kind in POINT_TO_POINT else set(op.ranks) - {rank}
    return {other for other in others if issued.get(other, {}).get(_counterpart(op), 0) < op.sequence}


def _counterpart(op: PendingOp) -> str:
    """The channel on which the other side counts its part."""
    if op.kind == "recv":
        return op.channel.removesuffix(RECEIVED)
    return op.channel + RECEIVED if op.kind == "send" else op.channel
