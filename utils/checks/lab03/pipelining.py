"""03.all_reduce_pipelined: the ring in pieces, of which one is added while the next is on its way.

Whether pieces overlap is judged by the order in which a rank issues and waits, which the program decides, never by how
long anything took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from utils.checks.lab03.cases import BEGUN, Case, observe
from utils.checks.lab03.rings import FIRST, on_case, run
from utils.checks.lab03.values import judge_all_reduce
from utils.checks.lab03.wires import judge_tools, judge_wire
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake
from utils.runtime.recorder import Op

WORLD_SIZES = (FIRST, 2, 3)


@dataclass(frozen=True)
class Cut(Case):
    """The same, with each part cut into `pieces`."""

    pieces: int = 4

    @property
    def name(self) -> str:
        return f"{super().name}, {self.pieces} piece{'s' * (self.pieces > 1)}"


def cases_of(ranks: int) -> tuple[Cut, ...]:
    """Whole pieces first, then pieces of different lengths, one piece, and more pieces than a part has elements."""
    odd = 12 * ranks + ranks - 1
    return (
        Cut(16 * ranks, ranks, torch.float64, who=True),
        Cut(2**18, ranks, counted=True),
        Cut(odd, ranks, pieces=5),
        Cut(odd, ranks, torch.float64, who=True, pieces=5),
        Cut(odd, ranks, pieces=1),
        Cut(2 * ranks + 1, ranks, pieces=4),
        Cut(odd, ranks, torch.float16, pieces=3),
    )


def verify(answer: Any) -> str:
    for ranks in WORLD_SIZES:
        cases = cases_of(ranks)
        for together in (cases[:1], cases[1:]) if ranks == FIRST else (cases,):
            calls = {case.name: partial(observe, case, call_with_pieces) for case in together}
            seen = run(answer, calls, ranks, together)
            for case in together:
                with on_case(case, seen[case.name], first=case is cases[0]):
                    judge_tools(seen[case.name])
                    judge_all_reduce(case, seen[case.name])
                    judge_wire(case, seen[case.name], passes=2)
                    judge_pieces(case, seen[case.name])
    return (
        "the sum stands on every rank, in place, on 2, 3 and 4 ranks, with 1 to 5 pieces a part, also with more pieces "
        "than elements; a piece is passed on before the wait for the next one, several receives are under way at a "
        "time, every send is waited for, and each rank sends 2(N-1)/N S as without pieces."
    )


def call_with_pieces(case: Cut, answer: Any, start: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """The answer gets the rank's tensor, and the number of pieces."""
    return start, answer(start, case.pieces)


def judge_pieces(case: Cut, seen: Sequence[Seen]) -> None:
    """Raise Mistake unless parts travel in pieces that overlap with the adding."""
    if case.pieces == 1 or case.length < case.pieces * case.ranks:
        return
    part = -(-case.length // case.ranks)
    piece = -(-part // case.pieces) * case.itemsize
    for each in seen:
        sends, receives = ([op for op in each.after(BEGUN) if op.kind == kind] for kind in ("send", "recv"))
        largest = max(op.bytes for op in sends)
        if largest > piece:
            raise Mistake(
                f"a message holds {largest // case.itemsize} elements, where a part of {part} in {case.pieces} pieces "
                f"makes messages of at most {piece // case.itemsize}: cut each part into `pieces`."
            )
        if _most_under_way(receives) < 2:
            raise Mistake(
                "only one receive is under way at a time: while a piece is added, nothing can arrive. Begin the "
                "receives of all pieces of a part before waiting for the first."
            )
        # In the first step: between the waits for the first and the second piece one must leave, and before the wait
        # for the last more than this rank's own.
        ends = sorted(_over(op) for op in receives[: case.pieces])
        before_last = sum(op.issued_at < ends[-1] for op in sends)
        if before_last <= case.pieces or not any(ends[0] < op.issued_at < ends[1] for op in sends):
            several = "all" if before_last <= case.pieces else "several"
            raise Mistake(
                f"a rank waits for {several} pieces of a part before it passes the first one on: add a piece and send "
                "it as soon as it is there, then wait for the next."
            )


def _over(op: Op) -> float:
    """When the code went on after it; for a blocking one, when it was complete."""
    if op.waited_at is not None:
        return op.waited_at
    return op.issued_at if op.completed_at is None else op.completed_at


def _most_under_way(ops: Sequence[Op]) -> int:
    """How many were issued and not waited for, at most at a time."""
    return max((sum(other.issued_at <= op.issued_at < _over(other) for other in ops) for op in ops), default=0)
