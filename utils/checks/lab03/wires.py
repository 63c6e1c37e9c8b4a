"""Looks at what the ranks sent: to whom, how many bytes, in how many messages. Values are judged elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from utils.checks.lab03.cases import BEGUN, Case
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.runtime.recorder import POINT_TO_POINT, Op

TOLERANCE = 0.01  # what framing may add to the bytes that sockets count


def judge_tools(seen: Sequence[Seen]) -> None:
    """Raise Mistake if a collective of torch's did the work."""
    for each in seen:
        for op in each.after(BEGUN):
            if op.kind not in POINT_TO_POINT:
                line = f" (line {op.line.line}: `{op.line.text}`)" if op.line else ""
                if op.kind == "barrier":
                    raise Mistake(
                        f"a barrier stands in the ring{line}: torch's collectives are not for you. A receive waits for "
                        "what its neighbour sends, and nothing else needs to be waited for."
                    )
                raise Mistake(
                    f"torch's own {op.kind} does the work{line}: build it from sends and receives between neighbours."
                )


def judge_wire(case: Case, seen: Sequence[Seen], passes: int) -> None:
    """Raise Mistake unless each rank sends, and receives, what `passes` ways around the ring need.

    A part is at most one element longer than another, so parts that are padded to one length pass as well.
    """
    n = case.ranks
    if all(not each.after(BEGUN) for each in seen):
        raise Mistake("the numbers are right, but nothing was sent: they do not come from the other ranks.")
    if n > 3:
        _judge_neighbours(seen, n)
    size = case.length * case.itemsize
    allowed = passes * (n - 1) * -(-case.length // n) * case.itemsize
    for rank, each in enumerate(seen):
        for kind, verb in (("send", "sends"), ("recv", "receives")):
            ops = [op for op in each.after(BEGUN) if op.kind == kind]
            if sum(op.bytes for op in ops) > allowed:
                _too_many(case, rank, verb, ops, passes, size, allowed)
    if case.counted:
        _judge_sockets(seen, passes * (n - 1) / n * size, size)


def _judge_neighbours(seen: Sequence[Seen], n: int) -> None:
    sends = {rank: _peers(each, "send") for rank, each in enumerate(seen)}
    for centre in range(n):
        others = [peers for rank, peers in sends.items() if rank != centre]
        if len(sends[centre]) == n - 1 and all(peers == {centre} for peers in others):
            raise Mistake(
                f"all ranks send to rank {centre}, and it sends to all: its link carries {n - 1} times what the "
                "others' do. In a ring each rank sends to one neighbour and receives from the other."
            )
    for rank in range(n):
        far = sorted((sends[rank] | _peers(seen[rank], "recv")) - {(rank + 1) % n, (rank - 1) % n})
        if far:
            raise Mistake(
                f"rank {rank} talks to rank{'s' * (len(far) > 1)} {', '.join(map(str, far))}, not to its neighbours "
                "alone: in a ring the parts are handed on from neighbour to neighbour."
            )


def _peers(each: Seen, kind: str) -> set[int]:
    return {op.peer for op in each.after(BEGUN) if op.kind == kind}


def _too_many(case: Case, rank: int, verb: str, ops: Sequence[Op], passes: int, size: int, allowed: int) -> None:
    n, total = case.ranks, sum(op.bytes for op in ops)
    needed = allowed / size
    text = f"the numbers are right, but rank {rank} {verb} {total / size:.2f} S where the ring needs {needed:.2f} S"
    part = -(-case.length // n) * case.itemsize
    most = max(op.bytes for op in ops)
    if most >= size and n > 1 and case.length > 1:
        raise Mistake(f"{text}: a message holds the whole tensor. Send one part in each step.")
    steps = passes * (n - 1)
    if most <= part and len(ops) > steps:
        raise Mistake(f"{text}: {len(ops)} messages of one part where {steps} suffice. The loop runs too often.")
    raise Mistake(
        f"{text}: messages are larger than a part of {case.type_name}. Send each part in the tensor's own type."
    )


def _judge_sockets(seen: Sequence[Seen], law: float, size: int) -> None:
    """The same by the sockets' counters, where there are any."""
    for rank, each in enumerate(seen):
        wire = each.value.wire
        if wire is None or not wire.sent:
            continue
        for verb, count in (("sent", wire.sent), ("received", wire.received)):
            if abs(count - law) > TOLERANCE * law:
                raise Mistake(
                    f"the numbers are right, but rank {rank}'s sockets {verb} {count / size:.2f} S where the ring's "
                    f"law says {law / size:.2f} S."
                )
