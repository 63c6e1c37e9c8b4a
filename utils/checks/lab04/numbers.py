"""Weights after each step beside those of a single process, and the name of the mistake that tells them apart.

With plain SGD a step moves a weight by its gradient times the learning rate. So the gradient that a step has used can
be told from the weights alone, wherever an answer keeps its slices and in whatever shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from utils.checks.lab01.gradients import Gradients, Suspect, added, compare, gradients_of, mean_factors, scaled
from utils.checks.lab01.traps import joined, lopsided
from utils.checks.lab04.training import OPTIMIZERS, Case, Trained, Weights
from utils.checks.verdict import Mistake

LEARNING_RATE = 1.0  # of the plain SGD in OPTIMIZERS
FAR_FP32, FAR_BF16 = 1e-4, 0.05  # of the way that the twin's weights have gone

STILL = (
    "the model's weights do not move: a step must end in the weights that the next forward uses. Is what the optimizer "
    "has stepped copied back into the model?"
)
_FAR_OFF = {
    "rounded": (
        "the master weights are rounded to bf16 each step: what a step adds is smaller than a bf16 number can show, "
        "and is lost. Keep fp32 masters from step to step, and round only what the model uses."
    ),
    "stale": "the gradients of earlier steps are still in the sum: after `step()` they are spent.",
    "summed": "the gradients are summed over the ranks, not averaged.",
}

Groups = Sequence[Sequence[str]]  # names of the parameters that are sliced together, in their order


@dataclass(frozen=True)
class Steps:
    """What the twin did: weights before and after each step, mean gradients of each, and each rank's own."""

    weights: tuple[Weights, ...]
    whole: tuple[Gradients, ...]
    local: tuple[tuple[Gradients, ...], ...]  # by step, then by rank
    last: tuple[Gradients, ...]  # by step, of the last micro-batch alone


def judge_returned(trained: Sequence[Trained]) -> None:
    """Raise Mistake unless every rank got a function `step` and made an optimizer."""
    for each in trained:
        if each.returned:
            raise Mistake(f"your function returns {each.returned}; it is to return the function `step`.")
        if each.wraps:
            raise Mistake(
                "torch's DistributedDataParallel does the work: it keeps everything whole on every rank, and "
                "all-reduces. Nothing is sharded."
            )
        if not each.optimized:
            raise Mistake(
                "no optimizer is made: call `make_optimizer` with this rank's slices, and its `step` in yours."
            )


def judge_sharded(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """Raise Mistake if a rank's optimizers step as many numbers as the model has, or are made again and again."""
    n, whole = len(trained), sum(p.numel() for p in case.model.build().parameters() if p.requires_grad)
    for rank, each in enumerate(trained):
        if len(each.optimized) > max(len(groups), 2):
            raise Mistake(
                f"{len(each.optimized)} optimizers are made in {len(case.micro_batches)} steps: one that is made anew "
                "has lost its moments. Make it before `step`, once."
            )
        if n > 1 and sum(each.optimized) >= whole:
            raise Mistake(
                f"nothing is sharded: the optimizer of rank {rank} steps {sum(each.optimized)} numbers, and the model "
                f"has {whole} trainable ones. On {n} ranks each is to step one slice of each bucket, and to keep "
                "masters and moments of that slice alone."
            )


def twin(case: Case, world_size: int, mistake: Literal["", "rounded", "stale", "summed"] = "") -> Steps:
    """The same steps in one process that sees every rank's samples.

    mistake: "rounded", fp32 masters made anew from the rounded weights at each step; "stale", gradients of earlier
    steps stay in the sum; "summed", over the ranks.
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
                gradient = gradient.float() * (world_size if mistake == "summed" else 1)
                master.grad = gradient + master.grad if mistake == "stale" and master.grad is not None else gradient
            if mistake == "rounded":
                master.copy_(p.detach())
        optimizer.step()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)
        weights.append(_weights(model))
    return Steps(tuple(weights), tuple(whole), tuple(local), tuple(last))


def judge_gradients(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """With plain SGD: raise Mistake unless every step used the mean gradients, on every rank."""
    ranks, steps = len(trained), twin(case, len(trained))
    names = sorted(set(trained[0].weights[0]) & {name for group in groups for name in group})
    for step in range(len(case.micro_batches)):
        got = [_moved(each.weights[step], each.weights[step + 1], names) for each in trained]
        wanted = _named(steps.whole[step], names)
        local = [_named(each, names) for each in steps.local[step]]
        if all(not g.any() for each in got for g in each.values()):
            raise Mistake(STILL)
        compare(got, wanted, local, mean_factors(ranks), _suspects(case, steps, step, groups, names, ranks))
    _frozen_moved(trained, groups)


def judge_weights(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """With any optimizer: raise Mistake unless the weights stay beside the twin's, and the same on every rank."""
    steps = twin(case, len(trained))
    low = case.model.dtype == torch.bfloat16
    if low and any("float32" not in each.types for each in trained):
        raise Mistake(
            "the optimizer works on the bf16 weights themselves: a step smaller than 1/256 of a weight is lost. Give "
            "`make_optimizer` fp32 masters of them."
        )
    names = sorted(set(trained[0].weights[0]) & {name for group in groups for name in group})
    for rank, each in enumerate(trained):
        if not _distance(each.weights[-1], each.weights[0], names):
            raise Mistake(STILL)
        for step in range(1, len(each.weights)):
            off = _distance(each.weights[step], steps.weights[step], names)
            gone = _distance(steps.weights[step], steps.weights[0], names)
            if off <= (FAR_BF16 if low else FAR_FP32) * gone:
                continue
            _far_off(case, each, len(trained), names)
            raise Mistake(
                f"with {case.optimizer.removeprefix('small ')} the weights of rank {rank} after step {step} are not a "
                f"single process's: off by {off / gone:.1g} of the way that these have gone. Does each slice keep its "
                "own master and moments from step to step?"
            )


def _far_off(case: Case, trained: Trained, ranks: int, names: Sequence[str]) -> None:
    """Raise Mistake if a known one ends where these weights do."""
    off = _distance(trained.weights[-1], twin(case, ranks).weights[-1], names)
    for mistake, diagnosis in _FAR_OFF.items():
        if _distance(trained.weights[-1], twin(case, ranks, mistake).weights[-1], names) < off / 4:
            raise Mistake(diagnosis)


def groups_of(model: nn.Module, groups: Sequence[Sequence[nn.Parameter]]) -> Groups:
    """The names of the parameters, group by group."""
    names = {id(p): name for name, p in model.named_parameters()}
    return [[names[id(p)] for p in group] for group in groups]


def _weights(model: nn.Module) -> Weights:
    return {name: p.detach().clone() for name, p in model.named_parameters(remove_duplicate=False)}


def _gradients(model: nn.Module, batches: list) -> Gradients:
    model.zero_grad()
    inputs, targets = joined(batches)
    lopsided(model(inputs), targets).backward()
    found = gradients_of(model)
    model.zero_grad()
    return found


def _named(gradients: Gradients, names: Sequence[str]) -> dict[str, torch.Tensor | None]:
    return {name: gradients[name] for name in names}


def _moved(before: Weights, after: Weights, names: Sequence[str]) -> dict[str, torch.Tensor]:
    return {name: (before[name] - after[name]) / LEARNING_RATE for name in names}


def _distance(a: Weights, b: Weights, names: Sequence[str]) -> float:
    return sum((a[name].double() - b[name].double()).square().sum().item() for name in names) ** 0.5


def _frozen_moved(trained: Sequence[Trained], groups: Groups) -> None:
    """Raise Mistake if a parameter that is in no group has changed."""
    ours = {name for group in groups for name in group}
    for rank, each in enumerate(trained):
        for name, before in each.weights[0].items():
            shared = any(torch.equal(before, each.weights[0][other]) for other in ours & each.weights[0].keys())
            if name not in ours and not shared and not torch.equal(before, each.weights[-1][name]):
                raise Mistake(f"`{name}` is frozen, and has changed on rank {rank}.")


def _suspects(case: Case, steps: Steps, step: int, groups: Groups, names: Sequence[str], ranks: int) -> list[Suspect]:
    whole, before, after = steps.whole[step], steps.weights[step], steps.weights[step + 1]
    shapes = {name: value.shape for name, value in before.items()}

    def everyone(gradients: Gradients, diagnosis: str) -> Suspect:
        return Suspect([_named(gradients, names)] * ranks, diagnosis)

    def regrouped(values: Gradients, change: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, torch.Tensor]:
        return _regrouped(values, groups, shapes, ranks, change)

    found = [
        everyone(
            regrouped(whole, lambda rows: torch.cat([rows[:-1], 0 * rows[-1:]])),
            "the last rank's slice is lost: its weights never move. Every slice counts, the last with its padding.",
        ),
        Suspect(
            [_named(regrouped(whole, lambda rows, r=r: _row_alone(rows, r)), names) for r in range(ranks)],
            "every rank has the new weights of its own slice alone: all-gather them after the optimizer's step.",
        ),
    ]
    for shift, which in ((1, "before it"), (-1, "after it")):
        moved = regrouped(after, lambda rows, shift=shift: rows.roll(shift, 0))
        gradients = regrouped(whole, lambda rows, shift=shift: rows.roll(shift, 0))
        found.append(
            everyone(
                _moved(before, {**after, **moved}, names),
                f"the slices are gathered in the wrong order: each stands where the rank {which} belongs. Slice r of "
                "the flat buffer is rank r's.",
            )
        )
        found.append(
            everyone(
                gradients,
                f"each rank steps its slice with the gradients of the slice {which}: slice r is rank r's in both.",
            )
        )
    flipped = regrouped(after, lambda rows: rows.flip(0))
    found.append(
        everyone(
            _moved(before, {**after, **flipped}, names),
            "the slices are gathered in the wrong order, the last rank's first. Slice r of the buffer is rank r's.",
        )
    )
    if case.micro_batches[step] > 1:
        found.append(
            everyone(
                steps.last[step],
                "with several micro-batches the earlier ones are lost: only the last one's gradients are used. Add "
                "each result to the slice.",
            )
        )
    if step:
        found.append(
            everyone(
                added([whole, steps.whole[step - 1]]),
                f"in step {step} the gradients of the step before are still in the sum: after `step()` they are spent.",
            )
        )
    return found


def _row_alone(rows: torch.Tensor, rank: int) -> torch.Tensor:
    alone = torch.zeros_like(rows)
    alone[rank] = rows[rank]
    return alone


def _regrouped(
    values: Gradients,
    groups: Groups,
    shapes: dict[str, torch.Size],
    ranks: int,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, torch.Tensor | None]:
    """`values` with each group's flat, padded numbers, as (ranks, length), changed."""
    result = dict(values)
    for group in groups:
        parts = [
            torch.zeros(shapes[name].numel()) if values.get(name) is None else values[name].flatten() for name in group
        ]
        flat = torch.cat(parts)
        length = -(-len(flat) // ranks)
        padded = torch.cat([flat, flat.new_zeros(ranks * length - len(flat))])
        changed = change(padded.view(ranks, length)).flatten()
        for name, part in zip(group, changed[: len(flat)].split([len(part) for part in parts]), strict=True):
            result[name] = part.view(shapes[name])
    return result
