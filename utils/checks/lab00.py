"""Lesson 00's warm-up: an all-reduce built from smaller pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.exercise import Exercise
from utils.checks.ranks import Mark, Seen, hold_back, on_a_copy, run_cases
from utils.checks.verdict import Mistake
from utils.checks.waiting import judge_waiting
from utils.theory.traffic import gloo_bytes

LENGTH = 12 * 1024  # numbers in the tensor: divisible by 2, 3 and 4 ranks


@dataclass(frozen=True)
class After:
    """One rank after the answer: its tensor (LENGTH,) float32, and the tensor that was returned, if one was."""

    tensor: torch.Tensor
    returned: torch.Tensor | None


def start_of(rank: int) -> torch.Tensor:
    """Rank r's numbers: whole and below 1000, so that their sums are exact in any order; different on every rank."""
    return torch.randint(1, 1000, (LENGTH,), generator=torch.Generator().manual_seed(rank)).float()


def observe(answer: Any, mark: Mark) -> After:
    """In a rank: the answer, on this rank's numbers."""
    tensor = start_of(dist.get_rank())
    hold_back(dist.get_world_size() - 1)
    returned = answer(tensor)
    mark("returned")
    return After(tensor, returned.detach().clone() if isinstance(returned, torch.Tensor) else None)


def verify(answer: Any) -> str:
    runs = {}
    for ranks in (4, 2, 3):
        try:
            runs[ranks] = run_cases(answer, {"sum": observe}, ranks)["sum"]
            judge_waiting(runs[ranks])
            judge(runs[ranks])
        except Mistake as mistake:
            text = _sizes(str(mistake)) or str(mistake)
            right = " It is right on 4 ranks: use `dist.get_world_size()` where a number of ranks is needed."
            raise Mistake(text if ranks == 4 else f"on {ranks} ranks: {text}{right}") from None
    return f"the sum stands on every rank, in place, on 2, 3 and 4 ranks. {_cost(dict(sorted(runs.items())))}"


def _sizes(message: str) -> str | None:
    """What gloo's check of a collective's sizes means; None for any other message."""
    line = re.search(r"\(line .*\)", message)
    if "outputShape" not in message and "invalid tensor size" not in message:
        return None
    which = f" {line.group()}" if line else ""
    if "all_gather" in which:
        return (
            f"the sizes do not fit{which}: in `all_gather_single(output, input)` the output holds all ranks' inputs, "
            "N times the elements of one. The output comes first."
        )
    return (
        f"the sizes do not fit{which}: in `reduce_scatter_single(output, input)` the output needs 1/N of the input's "
        "elements. The output comes first."
    )


def judge(seen: Sequence[Seen]) -> None:
    """Raise Mistake unless every rank's tensor is the sum, made without `dist.all_reduce`."""
    ranks = len(seen)
    own = [start_of(rank) for rank in range(ranks)]
    total = sum(own)
    after: list[After] = [each.value for each in seen]
    tensors = [each.tensor for each in after]
    if _equal(tensors, [total] * ranks):
        if any(op.kind == "all_reduce" for each in seen for op in each.ops):
            raise Mistake("the sum is right, but `dist.all_reduce` made it, which is what you are to build.")
        return
    if _equal(tensors, own):
        if all(each.returned is not None and each.returned.equal(total) for each in after):
            raise Mistake("the sum is returned, but the tensor still holds each rank's own numbers: write into it.")
        raise Mistake(
            on_a_copy(seen, "tensor", "tensor.copy_(out)")
            or "nothing happened: every rank's tensor still holds its own numbers."
        )
    if all(tensor.shape == total.shape and tensor.allclose(total / ranks) for tensor in tensors):
        raise Mistake(f"the numbers are averaged, not summed: every one is {ranks}.0 times too small.")
    if _equal(tensors, [ranks * mine for mine in own]):
        raise Mistake(f"every rank holds its own numbers times {ranks}: the other ranks' are not in the sum.")
    for source in range(ranks):
        if _equal(tensors, [own[source]] * ranks):
            raise Mistake(f"every rank holds rank {source}'s numbers: that is a broadcast, not a sum.")
    right = [rank for rank, tensor in enumerate(tensors) if tensor.equal(total)]
    if right:
        raise Mistake(f"only {_ranks(right)} of {ranks} hold{'s' * (len(right) == 1)} the sum: all ranks need it.")
    _judge_rank_0(tensors[0], own, total)


def _judge_rank_0(tensor: torch.Tensor, own: Sequence[torch.Tensor], total: torch.Tensor) -> None:
    """No rank has the sum: say what rank 0 has instead."""
    if tensor.shape != total.shape:
        raise Mistake(f"rank 0's tensor has shape {tuple(tensor.shape)} now; it had {tuple(total.shape)}.")
    for size in range(1, len(own)):
        for chosen in combinations(range(len(own)), size):
            if tensor.equal(sum(own[rank] for rank in chosen)):
                raise Mistake(f"rank 0 holds the sum of {_ranks(chosen)} alone, not of all {len(own)}.")
    summed = int((tensor == total).sum())
    if summed > LENGTH // 100:
        raise Mistake(
            f"on rank 0 only {summed} of {LENGTH} numbers are the sum: each rank has summed a part, and the parts "
            "still have to reach the others."
        )
    raise Mistake(
        f"no rank holds the sum: rank 0's first number is {tensor[0].item():g}, where the numbers of the {len(own)} "
        f"ranks sum to {total[0].item():g}."
    )


def _cost(runs: Mapping[int, Sequence[Seen]]) -> str:
    """The most that a rank sends, beside the ring's 2(N-1)/N S; computed from what was issued."""
    shares = {ranks: max(each.ring_bytes for each in seen) / (4 * LENGTH) for ranks, seen in runs.items()}
    needed = {ranks: 2 * (ranks - 1) / ranks for ranks in runs}
    as_ring = all(share <= 1.01 * needed[ranks] for ranks, share in shares.items())
    ring = ", ".join(f"{share:.2f}" for share in needed.values())
    verdict = "which is the ring's cost" if as_ring else f"where the ring needs {ring} S"
    text = f"By the ring's rules a rank sends {_listed(shares)} ranks, {verdict}"
    if not any(op.kind == "reduce_scatter" for seen in runs.values() for each in seen for op in each.ops):
        return f"{text}."
    on_gloo = {
        ranks: max(_gloo_bytes(each, rank) for rank, each in enumerate(seen)) / (4 * LENGTH)
        for ranks, seen in runs.items()
    }
    return (
        f"{text}; on gloo the counters say {_listed(on_gloo)} ranks, because its reduce-scatter is itself an "
        "all-reduce."
    )


def _listed(shares: Mapping[int, float]) -> str:
    return ", ".join(f"{share:.2f} S on {ranks}" for ranks, share in shares.items())


def _gloo_bytes(seen: Seen, rank: int) -> float:
    """Bytes that this rank sends on gloo for what it issued (computed, not measured)."""
    total = 0.0
    for op in seen.ops:
        if op.kind in ("send", "recv", "all_to_all"):
            total += op.ring_bytes
        else:
            root = 0 if op.peer is None else op.ranks.index(op.peer)
            total += gloo_bytes(op.kind, op.bytes, len(op.ranks), op.ranks.index(rank), root)
    return total


def _equal(tensors: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> bool:
    return all(tensor.equal(each) for tensor, each in zip(tensors, wanted, strict=True))


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


EXERCISES = (
    Exercise(
        "00.all_reduce",
        "an all-reduce from smaller collectives",
        difficulty=2,
        minutes=8,
        parameters=("tensor",),
        hints=(
            "Divide the work: with N ranks, let rank r be the one that adds up part r of everybody's tensor. Then "
            "every rank holds one finished part.",
            "The first half is a reduce-scatter, the second an all-gather: `reduce_scatter_single(part, tensor)` and "
            "`all_gather_single(tensor, part)`, both from `utils`.",
            "`part = tensor.new_empty(len(tensor) // dist.get_world_size())` holds one part. Reduce-scatter into it, "
            "then all-gather from it into the tensor that was passed in.",
        ),
        verify=verify,
    ),
)
