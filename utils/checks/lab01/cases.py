"""What the checks of this lab share: the name of a case in front of a diagnosis, and the order of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from utils.checks.lab01.gradients import Gradients
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.checks.waiting import judge_waiting
from utils.runtime.recorder import Op


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


def reduced_once(calls: Sequence[Sequence[Op]], gradients: Gradients) -> None:
    """Raise Mistake if in any call the numbers all-reduced are as many as twice the gradients, whatever their type.

    calls: the operations of each call. For a model of which every parameter has a gradient: zeros that stand for
    missing ones would count.
    """
    wanted = sum(gradient.numel() for gradient in gradients.values() if gradient is not None)
    reduced = [sum(op.bytes // _size(op) for op in ops if op.kind == "all_reduce") for ops in calls]
    for number, numbers in enumerate(reduced, start=1):
        if numbers < 2 * wanted:
            continue
        if reduced[0] < 2 * wanted:
            raise Mistake(
                f"the gradients are right, but call {number} all-reduces {numbers / reduced[0]:.1f} times as many "
                "numbers as the first one: are hooks registered in each call and never removed?"
            )
        raise Mistake(
            f"the gradients are right, but the ranks all-reduce {numbers} numbers where the gradients are {wanted}: "
            "once is enough (the mean of equal numbers is the same number)."
        )


def _size(op: Op) -> int:
    """Bytes of one of its numbers."""
    return getattr(torch, op.dtype).itemsize if op.dtype else 1


def cost(seen: Sequence[Seen], size: float) -> str:
    """What the busiest rank issued: "2 operations, 1.50 S sent" with S = `size` bytes, by the ring's rules."""
    busiest = max(seen, key=lambda each: each.ring_bytes)
    count = len(busiest.ops)
    return f"{count} operation{'' if count == 1 else 's'}, {busiest.ring_bytes / size:.2f} S sent per rank"
