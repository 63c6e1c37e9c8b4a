"""Tells a deadlock from a slow run, from what ranks have issued and wait for. Pure functions.

A rank waits for another one if its oldest incomplete operation has a part that the other has not issued. The ranks are
stuck for certain if each of them waits for one that has ended, or for one that is stuck itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from utils.runtime.job import PendingOp, Place
from utils.runtime.recorder import POINT_TO_POINT


def stuck(places: Mapping[int, Place], living: Collection[int], issued: Mapping[int, Mapping[str, int]]) -> bool:
    """True if no living rank can go on.

    Args:
        places: where each living rank is; a rank without a place is taken to be running.
        living: ranks that have not ended.
        issued: operations issued so far, by rank and channel, of living and ended ranks.
    """
    if not living or any(rank not in places or not places[rank].pending for rank in living):
        return False
    waits_for = {rank: _missing(places[rank].pending[0], rank, issued) for rank in living}
    doomed: set[int] = set()
    while True:  # doomed: waits for an ended rank, or for a doomed one
        more = {r for r in living if r not in doomed and any(o not in living or o in doomed for o in waits_for[r])}
        if not more:
            break
        doomed |= more
    if doomed == set(living):
        return True
    # A circle of ranks that wait for each other: certain only if none of them computes meanwhile.
    return all(places[r].blocked and (r in doomed or _in_circle(r, places, waits_for)) for r in living)


def _in_circle(rank: int, places: Mapping[int, Place], waits_for: Mapping[int, set[int]]) -> bool:
    return bool(waits_for[rank]) or _disagrees(rank, places)


def _missing(op: PendingOp, rank: int, issued: Mapping[int, Mapping[str, int]]) -> set[int]:
    """Members of the operation that have not issued their part."""
    others = {op.peer} if op.kind in POINT_TO_POINT else set(op.ranks) - {rank}
    return {o for o in others if issued.get(o, {}).get(_counterpart(op), 0) < op.sequence}


def _counterpart(op: PendingOp) -> str:
    """The channel on which the other side counts its part."""
    if op.kind == "recv":
        return op.channel.removesuffix(" (received)")
    return f"{op.channel} (received)" if op.kind == "send" else op.channel


def _disagrees(rank: int, places: Mapping[int, Place]) -> bool:
    """True if another rank has issued something else as the same operation of the same group."""
    mine = places[rank].pending[0]
    for place in places.values():
        for other in place.pending[:1]:
            same = (other.channel, other.sequence) == (mine.channel, mine.sequence)
            if same and (other.kind, other.bytes) != (mine.kind, mine.bytes):
                return True
    return False
