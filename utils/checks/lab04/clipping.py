"""04.clip_gradients: every step begins by scaling this rank's slices by the norm over all ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab01.cases import on_case
from utils.checks.ranks import STEP, Mark, Seen, run_cases
from utils.checks.verdict import Mistake

MAX_NORM = 2.0
LENGTHS = (3, 400, 1)  # of the slices, on every rank
# Of the gradients, by step: the norm is above MAX_NORM, below, above, and above though that of rank 0 alone is below.
SIZES = (1.0, 0.01, 3.0, 0.06)
WEIGHT = 0.5  # every number of the slices before a step
OTHER = 10 * MAX_NORM  # the gradient of an optimizer that nobody asked to clip
TOLERANCE = 1e-4
SMALL = 64  # bytes that finding a norm may take, for each slice


@dataclass(frozen=True)
class Clipped:
    """One rank under SGD with a rate of 1.

    moved   by step, how far each slice moved
    early   whether the call alone moved them
    other   how far another optimizer moved its only number, whose gradient is OTHER
    """

    moved: tuple[tuple[torch.Tensor, ...], ...]
    early: bool
    other: float


def gradients(rank: int, world_size: int, step: int) -> list[torch.Tensor | None]:
    """Of each slice. Rank r's are r + 1 times as large; in step 2 the last rank has none."""
    if step == 2 and rank == world_size - 1:
        return [None] * len(LENGTHS)
    generator = torch.Generator().manual_seed(100 * step + rank)
    return [(rank + 1) * SIZES[step] * torch.randn(length, generator=generator) for length in LENGTHS]


def verify(answer: Any) -> str:
    for ranks in (4, 2, 3):
        seen = run_cases(answer, {"": observe}, ranks)[""]
        with on_case(f"slices of {LENGTHS} numbers", seen, first=ranks == 4):
            judge(seen)
    return (
        "on 2, 3 and 4 ranks the step is that of a single process that clips all gradients by their norm, within 1e-4; "
        "gradients below the norm stay as they are; also where a rank has none; and no more than a few numbers are "
        "sent."
    )


def observe(answer: Any, mark: Mark) -> Clipped:
    """In a rank: the call, then the steps."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    slices = [torch.full((length,), WEIGHT) for length in LENGTHS]
    optimizer = torch.optim.SGD(slices, lr=1.0)
    for each, gradient in zip(slices, gradients(rank, world_size, 0), strict=True):
        each.grad = gradient
    mark("call")
    answer(optimizer, MAX_NORM)
    early = any(bool((each != WEIGHT).any()) for each in slices)
    moved = []
    for step in range(len(SIZES)):
        with torch.no_grad():
            for each, gradient in zip(slices, gradients(rank, world_size, step), strict=True):
                each.fill_(WEIGHT)
                each.grad = gradient
        mark(f"{STEP}{step}")
        optimizer.step()
        moved.append(tuple(WEIGHT - each.detach() for each in slices))
    mark("end")
    return Clipped(tuple(moved), early, _other())


def _other() -> float:
    """How far an optimizer of somebody else moves its only number."""
    number = torch.zeros(1)
    number.grad = torch.full((1,), OTHER)
    torch.optim.SGD([number], lr=1.0).step()
    return -number.item()


def judge(seen: Sequence[Seen]) -> None:
    """In the notebook: each step's factor beside the right one, and beside those of known mistakes."""
    n = len(seen)
    clipped: list[Clipped] = [each.value for each in seen]
    if any(each.early for each in clipped):
        raise Mistake("your function takes a step itself: it only prepares that every step begins by clipping.")
    for step in range(len(SIZES)):
        given = [gradients(rank, n, step) for rank in range(n)]
        norms = [math.sqrt(sum(g.square().sum().item() for g in mine if g is not None)) for mine in given]
        norm = math.hypot(*norms)
        for rank, each in enumerate(clipped):
            others = _other_norms(given)
            _judge_rank(rank, n, step, given[rank], each.moved[step], norms, norm, others)
    if any(each.other != OTHER for each in clipped):
        raise Mistake(
            "the steps are right, but other optimizers are clipped too: a global hook sees them all. Register the hook "
            "on this one, `optimizer.register_step_pre_hook`."
        )
    for rank, each in enumerate(seen):
        for step in range(len(SIZES)):
            sent = sum(op.bytes for op in each.after(f"{STEP}{step}"))
            if sent > SMALL * len(LENGTHS):
                raise Mistake(
                    f"the steps are right, but rank {rank} exchanges {sent} B in each: the sum of squares is one "
                    "number. Nobody needs the others' gradients."
                )


def _judge_rank(
    rank: int,
    n: int,
    step: int,
    given: Sequence[torch.Tensor | None],
    moved: Sequence[torch.Tensor],
    norms: Sequence[float],
    norm: float,
    others: Mapping[str, float],
) -> None:
    if not norms[rank]:
        return
    if _by(1 if norm <= MAX_NORM else MAX_NORM / norm, given, moved):
        return
    if norm <= MAX_NORM and _by(MAX_NORM / norm, given, moved):
        raise Mistake(
            f"in step {step} the norm is {norm:.3f}, below max_norm {MAX_NORM:g}, and the gradients are scaled up: "
            "then they stay as they are."
        )
    place = f"in step {step} on rank {rank} of {n}, where the norm over all ranks is {norm:.3f}"
    if norms[rank] <= MAX_NORM < norm and _by(1, given, moved):
        raise Mistake(
            f"{place}, the gradients are not clipped, and this rank's own norm is {norms[rank]:.3f}: what is compared "
            f"with max_norm {MAX_NORM:g} is the norm over all ranks too, or some clip and others do not."
        )
    if norm > MAX_NORM and _by(1, given, moved):
        raise Mistake(
            f"{place}, the step is taken with gradients that are not clipped to {MAX_NORM:g}: nothing clips, or only "
            "after the step. It is to be done before, in every step."
        )
    for wrong, diagnosis in _KNOWN.items():
        value = wrong(norms, rank)
        if _by(min(1.0, MAX_NORM / value), given, moved) or _by(MAX_NORM / value, given, moved):
            raise Mistake(f"{place}, {diagnosis}")
    for what, value in others.items():
        if _by(MAX_NORM / value, given, moved):
            raise Mistake(f"{place}, the gradients are scaled by {what}: the norm is the root of the sum of squares.")
    factors = [_factor(g, m) for g, m in zip(given, moved, strict=True) if g is not None]
    if None in factors:
        raise Mistake(
            f"{place}, the numbers of a slice are scaled by different factors, number by number: all gradients have "
            "one."
        )
    if max(factors) > (1 + 10 * TOLERANCE) * min(factors):
        raise Mistake(f"{place}, the slices are scaled by different factors: each is clipped by its own norm.")
    earlier = " Is something of the step before still in the sum of squares?" if step else ""
    raise Mistake(
        f"{place}, the gradients are scaled by {factors[0]:.3f}, not by {min(1, MAX_NORM / norm):.3f}.{earlier}"
    )


def _other_norms(given: Sequence[Sequence[torch.Tensor | None]]) -> dict[str, float]:
    """Of all ranks' gradients, the norms of other kinds."""
    numbers = torch.cat([g for mine in given for g in mine if g is not None]).abs()
    return {"the sum of absolute values": numbers.sum().item(), "the largest number": numbers.max().item()}


def _factor(given: torch.Tensor, moved: torch.Tensor) -> float | None:
    """By what all numbers are scaled; None if they are not scaled alike."""
    at = given.abs().argmax()
    factor = (moved[at] / given[at]).item()
    return factor if torch.allclose(moved, factor * given, rtol=10 * TOLERANCE, atol=1e-7) else None


def _by(factor: float, given: Sequence[torch.Tensor | None], moved: Sequence[torch.Tensor]) -> bool:
    """Whether every slice moved by its gradient times the factor."""
    return all(
        torch.allclose(m, torch.zeros_like(m) if g is None else factor * g, rtol=TOLERANCE, atol=1e-7)
        for g, m in zip(given, moved, strict=True)
    )


_KNOWN: dict[Callable[[Sequence[float], int], float], str] = {
    lambda norms, rank: norms[rank]: (
        "the gradients are clipped by the local norm: each rank scales by its own slices' alone, and the ranks part. "
        "Sum the squares over the ranks."
    ),
    lambda norms, rank: sum(norms): ("the ranks' norms are added up: sum their squares, and take the root of the sum."),
    lambda norms, rank: math.hypot(*norms) ** 2: "the root is missing: the gradients are scaled by the sum of squares.",
    lambda norms, rank: math.hypot(*norms) / math.sqrt(len(norms)): (
        "the squares are averaged over the ranks: slices do not overlap, so that they add up."
    ),
    lambda norms, rank: max(norms): "the largest of the ranks' norms is taken: sum their squares.",
    lambda norms, rank: WEIGHT * math.sqrt(sum(LENGTHS) * len(norms)): (
        "the norm is that of the slices themselves: clip by that of their `.grad`s."
    ),
    lambda norms, rank: (
        sum(norms) / len(norms)
    ): "the ranks' norms are averaged: sum their squares, then take the root.",
    lambda norms, rank: norms[rank] * math.sqrt(len(norms)): (
        "the gradients are clipped by the local norm, to a share of max_norm: there is one norm, over all ranks, and "
        "all scale alike. Sum the squares over the ranks."
    ),
}
