"""Weights after each step beside those of a single process, and the name of the mistake that tells them apart.

With plain SGD a step moves a weight by its gradient times the learning rate. So the gradient that a step has used can
be told from the weights alone, wherever an answer keeps its slices and in whatever shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from utils.checks.lab01.gradients import Gradients, compare, mean_factors
from utils.checks.lab04.reading import Weights
from utils.checks.lab04.suspects import Groups, moved, named, suspects
from utils.checks.lab04.training import Case, Trained
from utils.checks.lab04.twin import twin
from utils.checks.verdict import Mistake

FAR_FP32, FAR_BF16 = 1e-4, 0.05  # of the way that the twin's weights have gone

STILL = (
    "the model's weights do not move: a step must end in the weights that the next forward uses. Is what the optimizer "
    "has stepped copied back, and gathered anew? (Weights that are gathered once and never freed stay as they were.)"
)
_LATE = (
    "the first step leaves the model's weights as they are, and a later one moves them: each comes one step late. Hand "
    "over the gradients of this backward before the optimizer steps, and copy the masters back after it."
)
_FAR_OFF = {
    "rounded": (
        "the master weights are rounded to bf16 each step: what a step adds is smaller than a bf16 number can show, "
        "and is lost. Keep fp32 masters from step to step, and round only what the model uses."
    ),
    "stale": "the gradients of earlier steps are still in the sum: after `step()` they are spent.",
    "summed": "the gradients are summed over the ranks, not averaged.",
    "divided": (
        "the sum over the micro-batches is divided by their number: each loss is divided already, so that the sum is "
        "the mean."
    ),
}


def judge_returned(trained: Sequence[Trained]) -> None:
    """Raise Mistake unless every rank got a function `step` and made an optimizer."""
    for each in trained:
        if each.returned:
            raise Mistake(f"your function returns {each.returned}; it is to return the function `step`.")
        if each.past == "DistributedDataParallel":
            raise Mistake(
                "torch's DistributedDataParallel does the work: it keeps everything whole on every rank, and "
                "all-reduces. Nothing is sharded."
            )
        if each.past.startswith("FSDP"):
            raise Mistake("torch's fully_shard does the work: build it from flat slices and hooks.")
        if each.past:
            raise Mistake(
                f"an optimizer ({each.past}) is made past `make_optimizer`: the caller chooses the optimizer. Call "
                "`make_optimizer` with this rank's slices, and build what shards around it."
            )
        if not each.optimized:
            raise Mistake(
                "no optimizer is made: call `make_optimizer` with this rank's slices, and its `step` in yours."
            )


def judge_sharded(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """Raise Mistake if a rank's optimizers step as many numbers as the model has, or are made again and again."""
    n, whole = len(trained), sum(p.numel() for p in case.model.build().parameters() if p.requires_grad)
    names = [name for name, _ in case.model.build().named_parameters(remove_duplicate=False)]
    tied = len(names) > len(list(case.model.build().parameters()))
    total = sum(sum(each.optimized) for each in trained)
    if tied and whole + len(groups) * n < total < whole * n:
        raise Mistake(
            f"the ranks' optimizers step {total} numbers, and the model has {whole} trainable ones: a tied weight is "
            "counted twice. `layer.parameters()` gives it once."
        )
    for rank, each in enumerate(trained):
        if each.made[-1] > each.made[0]:
            raise Mistake(
                f"{each.made[-1]} optimizers are made in {len(each.made)} steps: one that is made anew has lost its "
                "moments. Make it before `step`, once."
            )
        if n > 1 and sum(each.optimized) >= whole:
            raise Mistake(
                f"nothing is sharded: the optimizer of rank {rank} steps {sum(each.optimized)} numbers, and the model "
                f"has {whole} trainable ones. On {n} ranks each is to step one slice of each bucket, and to keep "
                "masters and moments of that slice alone."
            )


def judge_gradients(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """With plain SGD: raise Mistake unless every step used the mean gradients, on every rank."""
    ranks, steps = len(trained), twin(case, len(trained))
    names = sorted(set(trained[0].weights[0]) & {name for group in groups for name in group})
    for step in range(len(case.micro_batches)):
        got = [moved(each.weights[step], each.weights[step + 1], names) for each in trained]
        wanted = named(steps.whole[step], names)
        local = [named(each, names) for each in steps.local[step]]
        if all(not g.any() for each in got for g in each.values()):
            later = [_distance(each.weights[-1], each.weights[step], names) for each in trained]
            raise Mistake(_LATE if any(later) else STILL)
        k = case.micro_batches[step]
        if k > 1 and all(_divided(each, wanted, k) for each in got):
            raise Mistake(
                f"the sum over {k} micro-batches is divided by {k}: each loss is divided already, so that the sum is "
                "the mean."
            )
        compare(got, wanted, local, mean_factors(ranks), suspects(case, steps, step, groups, names, ranks))
    _frozen_changed(trained, groups)


def judge_weights(case: Case, trained: Sequence[Trained], groups: Groups) -> None:
    """With any optimizer: raise Mistake unless the weights stay beside the twin's, and the same on every rank."""
    steps = twin(case, len(trained))
    low = case.model.dtype == torch.bfloat16
    others = sorted({name for each in trained for name in each.types} - {"float32"})
    if low and others and "bfloat16" not in others:
        raise Mistake(f"the optimizer works on masters of {others[0]}: fp32 masters are what 16 B for each need.")
    if low and others:
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
            if _one_late(each, steps.weights, names):
                raise Mistake(_LATE)
            _far_off(case, each, len(trained), names)
            if len(trained) == 1:
                place, right, each_one = f"after step {step}", "those that fp32 masters give", "weight"
            else:
                place, right, each_one = f"of rank {rank} after step {step}", "a single process's", "slice"
            raise Mistake(
                f"with {case.optimizer.removeprefix('small ')} the weights {place} are not {right}: off by "
                f"{off / gone:.1g} of the way that these have gone. Does each {each_one} keep its own master and "
                "moments from step to step?"
            )


def _divided(got: Weights, wanted: Gradients, k: int) -> bool:
    """Whether some gradients are k times too small, and the others right: a bucket that is reduced once is."""
    found = False
    for name, right in wanted.items():
        if right is None or not right.any():
            continue
        near = 1e-3 * right.abs().max() + 1e-7  # what is read off from weights is rounded, as these are
        if (got[name] - right).abs().max() > near:
            if (k * got[name] - right).abs().max() > k * near:
                return False
            found = True
    return found


def _one_late(trained: Trained, right: Sequence[Weights], names: Sequence[str]) -> bool:
    """Whether after each step the weights are nearer to those of the step before than to those of this one."""
    return all(
        _distance(now, before, names) < _distance(now, here, names) / 4
        for now, before, here in zip(trained.weights[1:], right[:-1], right[1:], strict=True)
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


def _distance(a: Weights, b: Weights, names: Sequence[str]) -> float:
    return sum((a[name].double() - b[name].double()).square().sum().item() for name in names) ** 0.5


def _frozen_changed(trained: Sequence[Trained], groups: Groups) -> None:
    """Raise Mistake if a parameter that is in no group has changed."""
    ours = {name for group in groups for name in group}
    for rank, each in enumerate(trained):
        for name, before in each.weights[0].items():
            shared = any(torch.equal(before, each.weights[0][other]) for other in ours & each.weights[0].keys())
            if name not in ours and not shared and not torch.equal(before, each.weights[-1][name]):
                raise Mistake(f"`{name}` is frozen, and has changed on rank {rank}.")
