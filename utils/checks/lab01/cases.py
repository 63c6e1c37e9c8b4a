"""What the checks of this lab share: the name of a case in front of a diagnosis, and the order of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.checks.waiting import judge_waiting


@contextmanager
def on_case(name: str, seen: Sequence[Seen] | None = None, first: bool = False) -> Iterator[None]:
    """Put "on a model with tied weights, 3 ranks: " in front of a diagnosis; nothing on the `first` case.

    Where nobody waited for a collective, that is the diagnosis, whatever the numbers are; where they are wrong and the
    ranks issued different collectives, it is that: everything else follows from it.
    """
    place = "" if first else f"on {name}, {len(seen)} ranks: " if seen else f"on {name}: "
    try:
        judge_waiting(seen or [])
    except Mistake as mistake:
        raise Mistake(place + str(mistake)) from None
    try:
        yield
    except Mistake as mistake:
        raise Mistake(place + (order_mismatch(seen or []) or str(mistake))) from None


def order_mismatch(seen: Sequence[Seen]) -> str | None:
    """The first place where two ranks of a group issued different collectives; None if all are in step."""
    everyone = tuple(range(len(seen)))
    issued = [
        [(op.kind, op.bytes) for op in each.ops if op.ranks == everyone and op.kind not in ("send", "recv")]
        for each in seen
    ]
    for rank, mine in enumerate(issued[1:], start=1):
        for place, (ours, theirs) in enumerate(zip(issued[0], mine, strict=False), start=1):
            if ours != theirs:
                return (
                    f"as collective {place} rank 0 issues {_op(ours)} and rank {rank} {_op(theirs)}: every rank must "
                    "issue the same collectives in the same order."
                )
        if len(mine) != len(issued[0]):
            return (
                f"rank 0 issues {len(issued[0])} collectives and rank {rank} {len(mine)}: all must take part in each."
            )
    return None


def _op(op: tuple[str, int]) -> str:
    return f"{op[0]} of {op[1]} B"


def cost(seen: Sequence[Seen], size: float) -> str:
    """What the busiest rank issued: "2 operations, 1.50 S sent" with S = `size` bytes, by the ring's rules."""
    busiest = max(seen, key=lambda each: each.ring_bytes)
    count = len(busiest.ops)
    return f"{count} operation{'' if count == 1 else 's'}, {busiest.ring_bytes / size:.2f} S sent per rank"
