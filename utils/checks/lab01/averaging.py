"""01.average_gradients: after it, every rank holds the gradients of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from utils.checks.lab01.cases import cost, on_case, reduced_once
from utils.checks.lab01.gradients import Gradients, compare, gradients_of, mean_factors
from utils.checks.lab01.traps import GRADIENT_TRAPS, PLAIN, SIZES, Trap, joined, shares
from utils.checks.ranks import Mark, Seen, hold_back, on_a_copy, run_cases
from utils.checks.verdict import Mistake


@dataclass(frozen=True)
class After:
    """One rank after the answer: its gradients, and the names of weights and buffers that changed."""

    gradients: Gradients
    changed: tuple[str, ...]
    buffers: tuple[str, ...] = ()


def verify(answer: Any) -> str:
    seen = run_cases(answer, {PLAIN.name: partial(observe, PLAIN, held_back=True)}, 4)[PLAIN.name]
    with on_case(PLAIN.name, seen, first=True):
        judge(PLAIN, seen)
    for ranks, traps in ((2, GRADIENT_TRAPS), (3, (PLAIN, SIZES))):
        cases = run_cases(answer, {trap.name: partial(observe, trap) for trap in traps}, ranks)
        for trap in traps:
            with on_case(trap.name, cases[trap.name]):
                judge(trap, cases[trap.name])
    size = sum(p.numel() * p.element_size() for p in PLAIN.build().parameters())
    return (
        "gradients within 1e-5 of a single process's on 2, 3 and 4 ranks, also with tied weights, frozen parameters, "
        "an unused layer, nested modules, one large and many tiny tensors. Cost on 4 ranks, by the ring's "
        f"rules: {cost(seen, size)}."
    )


def observe(trap: Trap, answer: Any, mark: Mark, held_back: bool = False) -> After:
    """In a rank: backward on its own share, then the answer; with one rank held back on request."""
    model = trap.build()
    backward(model, *shares(dist.get_world_size())[dist.get_rank()])
    before = {name: t.detach().clone() for name, t in (*model.named_parameters(), *model.named_buffers())}
    if held_back:
        hold_back(dist.get_world_size() - 1)
    answer(model)
    mark("returned")
    weights, buffers = (
        tuple(n for n, t in tensors if n not in before or not t.detach().equal(before[n]))
        for tensors in (model.named_parameters(), model.named_buffers())
    )
    return After(gradients_of(model), weights, buffers)


def judge(trap: Trap, seen: Sequence[Seen]) -> None:
    """In the notebook: every rank's gradients beside the twin's, which sees all shares as one batch."""
    ranks = len(seen)
    batches = shares(ranks)
    local = [_gradients(trap, batch) for batch in batches]
    whole = _gradients(trap, joined(batches))
    after: list[After] = [each.value for each in seen]
    compare(
        [each.gradients for each in after],
        whole,
        local,
        mean_factors(ranks),
        untouched=_untouched(seen),
        frozen=trap.frozen,
    )
    for rank, each in enumerate(after):
        if each.changed:
            raise Mistake(f"the weight `{each.changed[0]}` changed on rank {rank}: only gradients are to be averaged.")
        if each.buffers:
            raise Mistake(
                f"the buffer `{each.buffers[0]}` changed on rank {rank}: only gradients are to be averaged. What each "
                "rank's forward has left in its buffers stays its own."
            )
    if trap == PLAIN:
        reduced_once([seen[0].ops], whole)


def _untouched(seen: Sequence[Seen]) -> str:
    what = on_a_copy(seen, "gradient", "p.grad.copy_(out)")
    why = f" {what[0].upper()}{what[1:]}" if what else ""
    return f"nothing is averaged: every rank still has the gradients of its own shard.{why}"


def _gradients(trap: Trap, batch: tuple) -> Gradients:
    model = trap.build()
    backward(model, *batch)
    return gradients_of(model)


def backward(model: nn.Module, inputs: Any, targets: Any) -> None:
    """Mean squared error over the samples and features, then backward."""
    mse_loss(model(inputs), targets).backward()
