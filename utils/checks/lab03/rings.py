"""03.reduce_scatter_ring, all_gather_ring, all_reduce_ring: numbers and bytes, on 2 to 8 ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab03.cases import Call, Case, gather_cases, observe, ring_cases
from utils.checks.lab03.values import (
    UNFILLED,
    judge_all_gather,
    judge_all_reduce,
    judge_reduce_scatter,
    was_rounded,
)
from utils.checks.lab03.wires import judge_tools, judge_wire
from utils.checks.ranks import Hang, Seen, run_cases
from utils.checks.verdict import Mistake
from utils.checks.waiting import judge_waiting

FIRST = 4  # ranks; the others follow only if the answer is right on these
WORLD_SIZES = (FIRST, 2, 3, 5, 6, 7, 8)
OF_A_HALF = (FIRST, 2, 3, 5, 8)
VERIFIED = (
    "on {ranks} ranks, for sizes that N divides and that it does not, also for fewer elements than ranks, in six "
    "types; each rank sends and receives {share} S, within 1% of the law"
)

Judge = Callable[[Case, Sequence[Seen]], None]


def verify_reduce_scatter(answer: Any) -> str:
    verify_on_ranks(answer, call_with_tensor, judge_reduce_scatter, passes=1, world_sizes=OF_A_HALF)
    return f"every rank returns its part of the sum, {VERIFIED.format(ranks='2, 3, 4, 5 and 8', share='(N-1)/N')}."


def verify_all_gather(answer: Any) -> str:
    verify_on_ranks(answer, call_with_part, judge_all_gather, 1, OF_A_HALF, gather_cases)
    return (
        f"every rank holds all parts, each in its place, {VERIFIED.format(ranks='2, 3, 4, 5 and 8', share='(N-1)/N')}; "
        "also where `part` lies inside `tensor`."
    )


def verify_all_reduce(answer: Any) -> str:
    verify_on_ranks(answer, call_with_tensor, judge_all_reduce, passes=2)
    return f"the sum stands on every rank, in place, {VERIFIED.format(ranks='2 to 8', share='2(N-1)/N')}."


def call_with_tensor(case: Case, answer: Any, start: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """The answer gets the rank's tensor."""
    return start, answer(start)


def call_with_part(case: Case, answer: Any, start: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """The answer gets a tensor to fill, and this rank's part of its own numbers."""
    tensor = torch.full_like(start, UNFILLED)
    own, place = (each.tensor_split(dist.get_world_size())[dist.get_rank()] for each in (start, tensor))
    part = place.copy_(own) if case.inside else own.clone()
    return tensor, answer(tensor, part)


def verify_on_ranks(
    answer: Any,
    call: Call,
    judge: Judge,
    passes: int,
    world_sizes: Sequence[int] = WORLD_SIZES,
    cases_of: Callable[[int], Sequence[Case]] = ring_cases,
) -> None:
    """Run all cases on each number of ranks, and judge numbers and bytes. Raises Mistake."""
    for ranks in world_sizes:
        cases = cases_of(ranks)
        try:
            # Whole parts by themselves first: on other sizes some mistakes break gloo's connection before they show.
            for together in (cases[:2], cases[2:]) if ranks == FIRST else (cases,):
                seen = run(answer, {case.name: partial(observe, case, call) for case in together}, ranks, together)
                for case in rounded_first(together, seen):
                    with on_case(case, seen[case.name], first=case is cases[0]):
                        judge_tools(seen[case.name])
                        judge(case, seen[case.name])
                        judge_wire(case, seen[case.name], passes)
        except Mistake as mistake:
            if ranks == FIRST:
                raise
            raise Mistake(
                f"{mistake} It is right on {FIRST} ranks: does a number of ranks stand in the code?"
            ) from None


def rounded_first(cases: Sequence[Case], seen: Mapping[str, Sequence[Seen]]) -> list[Case]:
    """The cases in their order, but first those in which numbers were rounded: that explains all others."""
    return sorted(cases, key=lambda case: not was_rounded(case, seen[case.name]))


def run(answer: Any, cases: Mapping[str, Any], ranks: int, inputs: Sequence[Case]) -> dict[str, list[Seen]]:
    """`run_cases`; a hang of senders is explained, so is what gloo says where a message is longer than its tensor.

    An error on a special length says what is special about it.
    """
    try:
        return run_cases(answer, cases, ranks)
    except Hang as hang:
        told = str(hang)
        if "in send" in told and "in recv" not in told:
            raise Mistake(
                "every rank waits in `send` until its neighbour receives, and none does: begin the send with `isend` "
                f"and wait for it after the receive, or let every other rank receive first; {told}"
            ) from None
        raise
    except Mistake as mistake:
        if any(sign in str(mistake) for sign in _TOO_LONG):
            uneven = any(case.length % ranks for case in inputs)
            raise Mistake(
                f"on {ranks} ranks{f', with sizes that {ranks} does not divide' if uneven else ''}: a message is "
                "longer than the tensor that receives it, so that gloo ends the connection. Sender and receiver do "
                "not mean the same part."
            ) from None
        remark = next((case.remark for case in inputs if f", on {case.name}" in str(mistake)), "")
        raise Mistake(f"{mistake}{remark}") from None


# What is left of a connection after gloo received more than it has room for; which rank tells of it is chance.
_TOO_LONG = ("pair.cc", "buffer.cc", "SIGABRT", "gloo::", "Connection closed", "Connection reset")


@contextmanager
def on_case(case: Case, seen: Sequence[Seen], first: bool = False) -> Iterator[None]:
    """Put "on 51 elements, 4 ranks: " in front of a diagnosis; nothing on the first case of `FIRST` ranks.

    Where nobody waited for a receive or a send, that is the diagnosis, whatever the numbers are.
    """
    place = "" if first and case.ranks == FIRST else f"on {case.name}: "
    try:
        judge_waiting(seen, sends=True)
        yield
    except Mistake as mistake:
        remark = case.remark if "numbers are right" not in str(mistake) else ""
        raise Mistake(f"{place}{mistake}{remark}") from None
