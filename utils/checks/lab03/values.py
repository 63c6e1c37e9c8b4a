"""Names what is wrong with the numbers that a ring has left."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from utils.checks.lab03.cases import After, Case
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake


def judge_all_reduce(case: Case, seen: Sequence[Seen]) -> None:
    """Raise Mistake unless the sum stands in every rank's tensor."""
    after: list[After] = [each.value for each in seen]
    total = case.total()
    _judge_kept([each.tensor for each in after], case)
    if all(each.tensor.equal(total) for each in after):
        return
    if all(isinstance(each.returned, torch.Tensor) and each.returned.equal(total) for each in after):
        raise Mistake("the sum is returned, but the tensor still holds other numbers: write into it.")
    for rank, each in enumerate(after):
        if not each.tensor.equal(total):
            _judge_place(case, after, rank, total)


def _judge_place(case: Case, after: Sequence[After], rank: int, total: torch.Tensor) -> None:
    """Where in `rank`'s tensor the sum is missing, and what is there instead."""
    tensor, n = after[rank].tensor, case.ranks
    if tensor.equal(case.start(rank)):
        raise Mistake(f"nothing happened on rank {rank}: its tensor still holds its own numbers.")
    whole = n * (case.length // n)
    if case.length % n and tensor[:whole].equal(total[:whole]):
        raise Mistake(f"on rank {rank} the last {_elements(case.length - whole)} of {case.length} are not summed.")
    wrong = [p for p, part in enumerate(tensor.tensor_split(n)) if not part.equal(total.tensor_split(n)[p])]
    place = "no part" if len(wrong) == n else f"{'part' if len(wrong) == 1 else 'parts'} {_listed(wrong)}"
    there = "is the sum" if len(wrong) == n else f"{'is' if len(wrong) == 1 else 'are'} not the sum"
    first = wrong[0]
    what = describe(tensor.tensor_split(n)[first], total.tensor_split(n)[first], case)
    raise Mistake(f"on rank {rank} {place} of {n} {there}: part {first} {what}.")


def judge_reduce_scatter(case: Case, seen: Sequence[Seen]) -> None:
    """Raise Mistake unless every rank returns its own part of the sum."""
    after: list[After] = [each.value for each in seen]
    parts = case.total().tensor_split(case.ranks)
    for rank, each in enumerate(after):
        got, want = each.returned, parts[rank]
        if isinstance(got, str):
            raise Mistake(f"the function returns {got} on rank {rank}: return this rank's part of the sum, a tensor.")
        _judge_kept([got], case)
        if got.shape == (case.length,) and case.length != len(want):
            raise Mistake(f"rank {rank} returns all {case.length} elements: return its own part alone, part {rank}.")
        if got.shape != want.shape:
            raise Mistake(
                f"rank {rank} returns a tensor of shape {tuple(got.shape)}, where part {rank} of `tensor_split` has "
                f"{_elements(len(want))}."
            )
        if not got.equal(want):
            _judge_part(case, after, rank, parts)


def _judge_part(case: Case, after: Sequence[After], rank: int, parts: Sequence[torch.Tensor]) -> None:
    """What `rank` returns in place of its part of the sum."""
    got, n = after[rank].returned, case.ranks
    others = [p for p in range(n) if p != rank and len(parts[p])]
    if not case.who:
        for p in others:
            if got.equal(parts[p]):
                raise Mistake(f"rank {rank} returns part {p} of the sum, where part {rank} is asked for.")
    tensor = after[rank].tensor
    finished = [p for p in others if tensor.shape == (case.length,) and tensor.tensor_split(n)[p].equal(parts[p])]
    if finished and not describe(got, parts[rank], case).startswith("holds the average"):
        raise Mistake(
            f"the parts are off by one: on rank {rank} the complete sum is in part {finished[0]} of the tensor, and "
            f"part {rank} is asked for. Begin with another part."
        )
    raise Mistake(f"rank {rank} returns no part of the sum: it {describe(got, parts[rank], case)}.")


def judge_all_gather(case: Case, seen: Sequence[Seen]) -> None:
    """Raise Mistake unless every rank's tensor holds every rank's part, each in its place."""
    after: list[After] = [each.value for each in seen]
    wanted = [case.start(p).tensor_split(case.ranks)[p] for p in range(case.ranks)]
    _judge_kept([each.tensor for each in after], case)
    if all(each.tensor.equal(torch.cat(wanted)) for each in after):
        return
    if all(isinstance(each.returned, torch.Tensor) and each.returned.equal(torch.cat(wanted)) for each in after):
        raise Mistake("the whole is returned, but the tensor that was passed in is not filled: write into it.")
    for rank, each in enumerate(after):
        parts = each.tensor.tensor_split(case.ranks)
        wrong = [p for p, part in enumerate(parts) if not part.equal(wanted[p])]
        if not wrong:
            continue
        empty = [p for p in wrong if len(parts[p]) and (parts[p] == UNFILLED).all()]
        if len(empty) == len(wrong) == case.ranks:
            raise Mistake(f"nothing arrived: rank {rank}'s tensor is as it was.")
        if empty == [rank] == wrong:
            raise Mistake(f"rank {rank}'s own part is not in its tensor: copy it into part {rank} first.")
        if empty:
            raise Mistake(f"on rank {rank} {_parts(empty)} never arrived: a part needs {case.ranks - 1} steps around.")
        first = wrong[0]
        for p, want in enumerate(wanted):
            if p != first and len(want) and parts[first].equal(want):
                raise Mistake(f"on rank {rank} part {p} lies in the place of part {first}: the parts are misplaced.")
        raise Mistake(f"on rank {rank} {_parts(wrong)} of {case.ranks} hold other numbers than those that were sent.")


def was_rounded(case: Case, seen: Sequence[Seen]) -> bool:
    """Whether a rank has the sum of numbers, but rounded, or infinite ones: they went through a smaller type."""
    if case.who or not case.dtype.is_floating_point:
        return False
    total = case.total()
    if not total.isfinite().all():
        return False
    got = [t for each in seen for t in (each.value.tensor, each.value.returned) if isinstance(t, torch.Tensor)]
    same = [t for t in got if t.shape == total.shape and not t.equal(total)]
    return any(not t.isfinite().all() for t in got) or any(t.double().allclose(total.double(), 0.01) for t in same)


UNFILLED = -1  # what the tensor of an all-gather holds before


def describe(got: torch.Tensor, want: torch.Tensor, case: Case) -> str:
    """What `got` is where the sum `want` should be, such as "lacks the numbers of rank 2"."""
    if got.is_floating_point() and not got.isfinite().all():
        return "holds infinite numbers, though the sum fits its type: it travels, or is added up, in half precision"
    if case.who:
        return _who(got[got != want][0].item(), case.ranks)
    if got.double().allclose(want.double() / case.ranks, rtol=1e-3):
        return f"holds the average, {case.ranks} times less than the sum"
    if got.double().allclose(want.double(), rtol=0.01):
        return f"is rounded: it travels, or is added up, in a type that holds fewer digits than {case.type_name}"
    return f"begins with {got[got != want][0].item():g}, where the sum is {want[got != want][0].item():g}"


def _who(number: float, n: int) -> str:
    """What a wrong sum of 16**rank says of whose numbers are in it."""
    if number * n == sum(16.0**rank for rank in range(n)):
        return f"holds the average, {n} times less than the sum"
    if number != int(number) or not 0 < number < 16.0**n:
        return f"holds {number:g}, which is no sum of the ranks' numbers"
    counts = [int(number) >> 4 * rank & 15 for rank in range(n)]
    there = [rank for rank in range(n) if counts[rank]]
    if len(there) == 1 and counts[there[0]] == 1:
        return f"holds rank {there[0]}'s numbers alone"
    missing = [rank for rank in range(n) if not counts[rank]]
    often = [rank for rank in range(n) if counts[rank] > 1]
    said = [f"lacks the numbers of {_ranks(missing)}"] if missing else []
    said += [f"has the numbers of {_ranks(often)} more than once"] if often else []
    return " and ".join(said)


def _judge_kept(tensors: Sequence[torch.Tensor], case: Case) -> None:
    for tensor in tensors:
        if tensor.dtype != case.dtype:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise Mistake(f"the result is of type {kind}; the tensor passed in is of {case.type_name}.")


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _parts(numbers: Sequence[int]) -> str:
    return f"part{'' if len(numbers) == 1 else 's'} {_listed(numbers)}"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'' if len(numbers) == 1 else 's'} {_listed(numbers)}"
