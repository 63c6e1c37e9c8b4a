"""The single process that takes the same steps on every rank's samples; on request it makes a known mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from utils.checks.lab01.gradients import Gradients, added, gradients_of, scaled
from utils.checks.lab01.traps import Batch, joined, lopsided
from utils.checks.lab04.made import OPTIMIZERS
from utils.checks.lab04.reading import Weights
from utils.checks.lab04.training import Case


@dataclass(frozen=True)
class Steps:
    """What the twin did: weights before and after each step, mean gradients of each, and each rank's own."""

    weights: tuple[Weights, ...]
    whole: tuple[Gradients, ...]
    local: tuple[tuple[Gradients, ...], ...]  # by step, then by rank
    last: tuple[Gradients, ...]  # by step, of the last micro-batch alone


def twin(case: Case, world_size: int, mistake: Literal["", "rounded", "stale", "summed", "divided"] = "") -> Steps:
    """The same steps in one process that sees every rank's samples.

    mistake: "rounded", fp32 masters made anew from the rounded weights at each step; "stale", gradients of earlier
    steps stay in the sum; "summed", over the ranks; "divided", by the number of micro-batches once more.
    """
    model = case.model.build()
    trained = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float() for p in trained]
    optimizer = OPTIMIZERS[case.optimizer](masters)
    weights, whole, local, last = [_weights(model)], [], [], []
    for step, k in enumerate(case.micro_batches):
        by_rank: list[list[Gradients]] = [[] for _ in range(world_size)]
        for micro in range(k):
            for rank, batch in enumerate(case.model.batches(world_size, 10 * step + micro)):
                by_rank[rank].append(_gradients(model, [batch]))
        means = [scaled(added(each), 1 / k) for each in by_rank]
        local.append(tuple(means))
        last.append(scaled(added(each[-1] for each in by_rank), 1 / k / world_size))
        whole.append(scaled(added(means), 1 / world_size))
        named = dict(model.named_parameters())
        for p, master in zip(trained, masters, strict=True):
            gradient = next(whole[-1][name] for name, q in named.items() if q is p)
            if gradient is not None:
                gradient = gradient.float() * {"summed": world_size, "divided": 1 / k}.get(mistake, 1)
                master.grad = gradient + master.grad if mistake == "stale" and master.grad is not None else gradient
            if mistake == "rounded":
                master.copy_(p.detach())
        optimizer.step()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)
        weights.append(_weights(model))
    return Steps(tuple(weights), tuple(whole), tuple(local), tuple(last))


def _weights(model: nn.Module) -> Weights:
    return {name: p.detach().clone() for name, p in model.named_parameters(remove_duplicate=False)}


def _gradients(model: nn.Module, batches: list[Batch]) -> Gradients:
    model.zero_grad()
    inputs, targets = joined(batches)
    lopsided(model(inputs), targets).backward()
    found = gradients_of(model)
    model.zero_grad()
    return found
