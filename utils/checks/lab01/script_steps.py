"""01.script, step by step: what each rank's optimizer was given, beside the gradients of a single process.

Each step is judged at the weights that it began with, so that one mistake does not hide behind those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import mse_loss

from utils.checks.lab01.watched import SEED_SHIFT, Step
from utils.checks.verdict import Mistake

RANKS, STEPS, SAMPLES, FEATURES = 2, 5, 24, 6
LEARNING_RATE = 0.1
FIRST_SEED = 7  # rank 0's; not 0, so that drawing anew from a common seed does not give rank 0's weights by chance
SIZE = 4 * (FEATURES + 1)  # bytes of the weights, and of the gradients

Numbers = list[torch.Tensor]  # of weight and bias


@dataclass(frozen=True)
class Alone:
    """The single process: its weights before each step and after the last, the losses to print, one a step."""

    weights: tuple[Numbers, ...]
    losses: tuple[float, ...]


def train_alone() -> Alone:
    """All ranks' samples in one process, from rank 0's weights."""
    now, weights, losses = drawn(0), [], []
    for _ in range(STEPS):
        parts = [_loss_and_gradients(now, rank) for rank in range(RANKS)]
        losses.append(sum(loss for loss, _ in parts) / RANKS)
        weights.append(now)
        now = stepped(now, mean([gradients for _, gradients in parts]))
    return Alone((*weights, now), tuple(losses))


def drawn(rank: int, seed: int | None = None) -> Numbers:
    """The weights that the card's first lines draw on that rank, or those of another seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((FIRST_SEED + rank if seed is None else seed) + SEED_SHIFT * rank)
        return [p.detach() for p in nn.Linear(FEATURES, 1).parameters()]


def samples_of(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What the card's first lines draw on that rank: inputs (SAMPLES, FEATURES), targets (SAMPLES, 1)."""
    generator = torch.Generator().manual_seed(100 + rank + SEED_SHIFT * rank)
    return torch.randn(SAMPLES, FEATURES, generator=generator), torch.randn(SAMPLES, 1, generator=generator)


def _loss_and_gradients(weights: Numbers, rank: int) -> tuple[float, Numbers]:
    leaves = [w.clone().requires_grad_() for w in weights]
    inputs, targets = samples_of(rank)
    loss = mse_loss(nn.functional.linear(inputs, *leaves), targets)
    return loss.item(), list(torch.autograd.grad(loss, leaves))


def mean(parts: Sequence[Numbers]) -> Numbers:
    return [sum(each) / len(parts) for each in zip(*parts, strict=True)]


def scaled(numbers: Numbers, factor: float) -> Numbers:
    return [factor * each for each in numbers]


def stepped(weights: Numbers, gradients: Numbers) -> Numbers:
    return [w - LEARNING_RATE * g for w, g in zip(weights, gradients, strict=True)]


def same(got: Sequence[torch.Tensor | None], wanted: Numbers) -> bool:
    return len(got) == len(wanted) and all(
        g is not None and g.shape == w.shape and torch.allclose(g, w, rtol=1e-5, atol=1e-6)
        for g, w in zip(got, wanted, strict=True)
    )


def judge_steps(ranks: Sequence[Sequence[Step]]) -> list[Numbers]:
    """Raise Mistake at the first thing that is wrong; else by rank the weights after its last step."""
    _judge_number(ranks)
    _judge_start([steps[0] for steps in ranks])
    for number in range(STEPS):
        now = [steps[number] for steps in ranks]
        before = [steps[number - 1] for steps in ranks] if number else None
        after = [steps[number + 1] for steps in ranks] if number + 1 < STEPS else None
        if before is not None:
            _judge_between(before, now)
        _judge_gradients(now, before, after)
        if number == 0:
            _judge_sent(now)
        for rank, step in enumerate(now):
            if step.samples > SAMPLES:
                raise Mistake(
                    f"rank {rank} runs {step.samples} samples through the model in a step, where its own are "
                    f"{SAMPLES}: every rank is to compute on its own samples alone, or more ranks save no time."
                )
    return [stepped(steps[-1].weights, steps[-1].gradients) for steps in ranks]


def _judge_number(ranks: Sequence[Sequence[Step]]) -> None:
    got = [len(steps) for steps in ranks]
    if len(set(got)) > 1:
        told = ", ".join(f"{number} times on rank {rank}" for rank, number in enumerate(got))
        raise Mistake(
            f"`optimizer.step()` is called {told}: every rank is to train, on its own samples, and take each step."
        )
    if got[0] != STEPS:
        raise Mistake(
            f"`optimizer.step()` is called {got[0]} times on each rank, so that the weights are not those of {STEPS} "
            "steps."
        )
    for steps in ranks:
        for step in steps:
            if step.closure:
                raise Mistake("call `optimizer.step()` without a closure: the check looks at the gradients before it.")
            shapes = [tuple(w.shape) for w in step.weights]
            if shapes != [(1, FEATURES), (1,)]:
                raise Mistake(
                    f"the optimizer steps tensors of shapes {', '.join(map(str, shapes))}, not the model's weight and "
                    "bias: give it `model.parameters()`, as the card does."
                )


def _judge_start(first: Sequence[Step]) -> None:
    """The weights before the first step: rank 0's own, and sent."""
    own = [drawn(rank) for rank in range(RANKS)]
    start = [step.weights for step in first]
    sent = all(same(each, start[0]) for each in start)
    if sent and same(start[0], own[0]):
        return
    if sent and same(start[0], own[1]):
        raise Mistake("every rank starts from rank 1's weights, not rank 0's: `src=0`.")
    if sent and same(start[0], mean(own)):
        raise Mistake("every rank starts from the mean of the ranks' weights: broadcast rank 0's.")
    if all(same(each, mine) for each, mine in zip(start, own, strict=True)):
        raise Mistake("the ranks start from different weights: rank 0's are not broadcast.")
    for seed in (FIRST_SEED, 0, 1, 42):
        if same(start[0], drawn(0, seed)) and same(start[1], drawn(1, seed)):
            raise Mistake(
                f"every rank draws its weights from the seed {seed} and none are sent: another machine, or another "
                "release of torch, may draw others from it (here every rank does). Broadcast rank 0's."
            )
    if not same(start[0], own[0]):
        where = "every rank starts from the same other ones" if sent else "and the ranks start from different ones"
        raise Mistake(
            f"the weights that rank 0 has drawn are lost before the first step, {where}: broadcast those it has, and "
            "draw, set or train none anew."
        )
    if same(start[1][:1], own[0][:1]) or same(start[1][1:], own[0][1:]):
        raise Mistake("only one of weight and bias is sent: broadcast every parameter of rank 0's.")
    raise Mistake(
        "the ranks start from different weights: rank 1's are neither rank 0's nor those that it drew for itself. Does "
        "it draw them anew? (In the check a seed gives every rank numbers of its own.) Broadcast rank 0's."
    )


def _judge_sent(first: Sequence[Step]) -> None:
    """With right weights and gradients at the first step: has the first of them come from rank 0?"""
    communicated = min(step.received for step in first)
    if communicated < 2 * SIZE:
        raise Mistake(
            f"the ranks start from the same weights, but none are sent: until the first step they communicate "
            f"{communicated} B, and weights and gradients are {2 * SIZE} B. Broadcast rank 0's."
        )


def _judge_gradients(now: Sequence[Step], before: Sequence[Step] | None, after: Sequence[Step] | None) -> None:
    """What every rank's optimizer is given at one step."""
    local = [_loss_and_gradients(step.weights, rank)[1] for rank, step in enumerate(now)]
    whole, got = mean(local), [step.gradients for step in now]
    if all(same(each, whole) for each in got):
        return
    if all(same(each, mine) for each, mine in zip(got, local, strict=True)):
        if after is not None and same(after[1].weights, after[0].weights):
            raise Mistake(
                "at `optimizer.step()` each rank has the gradients of its own samples: it is the weights that are "
                "averaged, after the step. With SGD that comes to the same, with Adam it does not. Average the "
                "gradients, before the step."
            )
        raise Mistake(
            "the gradients are not averaged: at `optimizer.step()` each rank has those of its own samples alone. (To "
            "average the weights at the end is not the same: the steps in between differ.)"
        )
    for factor, what in (
        (RANKS, f"the gradients are summed, not averaged: every one is {RANKS}.0 times too large"),
        (
            1 / RANKS,
            f"the mean is divided by the number of ranks once more: every gradient is {RANKS}.0 times too small",
        ),
    ):
        if all(same(each, scaled(whole, factor)) for each in got):
            smaller = " (a smaller learning rate hides that under SGD, and nowhere else)" if factor > 1 else ""
            raise Mistake(f"{what}{smaller}.")
    if all(same(each, scaled(mine, 1 / RANKS)) for each, mine in zip(got, local, strict=True)):
        raise Mistake("each rank's own gradients are divided by the number of ranks, and never added up.")
    if before is not None and _keeps_old(got, whole, local, [step.gradients for step in before]):
        raise Mistake(
            "from the second step on, the gradients of the step before are still in the sum: `optimizer.zero_grad()` "
            "is missing."
        )
    right = [rank for rank, each in enumerate(got) if same(each, whole)]
    if right:
        raise Mistake(
            f"only rank {right[0]} of {RANKS} has the average: every rank needs it, because every rank steps."
        )
    raise Mistake(
        f"at `optimizer.step()` the gradients are not the mean over both ranks: they differ by up to "
        f"{_off(got[0], whole):.2g}. Is the loss the mean over the samples that the card draws?"
    )


def _keeps_old(got: Sequence[Numbers], whole: Numbers, local: Sequence[Numbers], old: Sequence[Numbers]) -> bool:
    """The old gradients are averaged again with the new ones, or added to the average."""
    again = mean([_sum(new, kept) for new, kept in zip(local, old, strict=True)])
    return all(same(each, again) or same(each, _sum(whole, kept)) for each, kept in zip(got, old, strict=True))


def _sum(one: Numbers, two: Numbers) -> Numbers:
    return [a + b for a, b in zip(one, two, strict=True)]


def _off(got: Sequence[torch.Tensor | None], wanted: Numbers) -> float:
    return max(((0.0 if g is None else g) - w).abs().max().item() for g, w in zip(got, wanted, strict=True))


def _judge_between(before: Sequence[Step], now: Sequence[Step]) -> None:
    """From one step to the next only the card's optimizer may change the weights."""
    for rank, (old, new) in enumerate(zip(before, now, strict=True)):
        if not same(new.weights, stepped(old.weights, old.gradients)):
            raise Mistake(
                f"the gradients are right, but rank {rank}'s weights after the step are not those of SGD with "
                f"lr={LEARNING_RATE}: use the optimizer of the card, and change the weights by its step alone."
            )
