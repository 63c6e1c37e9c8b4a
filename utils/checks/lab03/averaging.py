"""03.average_ring: the mean over the ranks, where the sum would not fit the tensor's type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from utils.checks.lab03.cases import After, Case
from utils.checks.lab03.numbers import apart
from utils.checks.lab03.rings import FIRST, call_with_tensor, verify_on_ranks
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake

LARGEST_HALF = 65504  # float16
WORLD_SIZES = (FIRST, 2, 3, 8)
ROUNDED = 0.02  # bfloat16, the coarsest type, holds a number to 0.4%; a few additions may lose as much again


@dataclass(frozen=True)
class Large(Case):
    """Numbers of which each fits float16, as their mean does, and the sum of two of them does not."""

    def start(self, rank: int) -> torch.Tensor:
        drawn = torch.rand(self.length, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)
        return (40000 + 20000 * drawn).to(self.dtype)


def cases_of(ranks: int) -> tuple[Case, ...]:
    """Whose numbers are in it; bytes by the sockets; then the other types, with a size not divided."""
    odd = 12 * ranks + ranks - 1
    return (
        Case(4 * ranks, ranks, torch.float64, who=True),
        Large(odd, ranks, torch.float16),
        Large(2**18, ranks, torch.float16, counted=True),
        Large(odd, ranks, torch.bfloat16),
        Large(odd, ranks),
        Large(odd, ranks, torch.float64),
        *((Large(ranks - 1, ranks, torch.float16),) if ranks > 2 else ()),
    )


def verify(answer: Any) -> str:
    verify_on_ranks(answer, call_with_tensor, judge, passes=2, world_sizes=WORLD_SIZES, cases_of=cases_of)
    return (
        "the mean stands on every rank, in place, on 2, 3, 4 and 8 ranks, also in float16 where the sum would be "
        "infinite, within N times the type's precision; it costs what the sum costs, 2(N-1)/N S."
    )


def judge(case: Case, seen: Sequence[Seen]) -> None:
    """Raise Mistake unless every rank's tensor holds the mean, each addition rounded once at most."""
    after: list[After] = [each.value for each in seen]
    n = case.ranks
    starts = [start.double() for start in case.starts()]
    mean = sum(starts) / n
    slack = n * torch.finfo(case.dtype).eps
    for rank, each in enumerate(after):
        if each.tensor.dtype != case.dtype:
            raise Mistake(f"the result is of type {each.tensor.dtype}; the tensor passed in is of {case.dtype}.")
        got = each.tensor.double()
        if got.allclose(mean, rtol=slack, atol=0):
            continue
        if each.tensor.equal(case.start(rank)):
            kept = isinstance(each.returned, torch.Tensor) and each.returned.double().allclose(mean, rtol=slack)
            raise Mistake(
                "the mean is returned, but the tensor still holds this rank's numbers: write into it."
                if kept
                else f"nothing happened on rank {rank}: its tensor still holds its own numbers."
            )
        if not got.isfinite().all():
            raise Mistake(
                f"the mean fits {case.type_name}, whose largest number is {torch.finfo(case.dtype).max:g}, and the sum "
                "of the ranks' numbers does not: it became infinite before it was divided. Divide first, then add."
            )
        for factor, what in ((n, "summed, and never divided"), (1 / n, "divided twice")):
            if got.allclose(factor * mean, rtol=slack, atol=0):
                raise Mistake(
                    f"the numbers are {what}: every one is {n} times too {'large' if factor > 1 else 'small'}."
                )
        at = int((got - mean).abs().argmax())
        holds, wanted = apart(got[at].item(), mean[at].item())
        told = f"rank {rank} holds {holds} where the mean of the ranks' numbers is {wanted}"
        if got.allclose(mean, rtol=ROUNDED, atol=0):
            raise Mistake(
                f"{told}. It is rounded: it travels, or is added up, in a type that holds fewer digits than "
                f"{case.type_name}."
            )
        raise Mistake(f"{told}.")
