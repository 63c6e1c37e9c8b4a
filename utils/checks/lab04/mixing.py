"""04.mixed_precision: bf16 weights and gradients, fp32 masters and moments, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.memory import COUNTER, LAYERS, ONE, PSI, TOLERANCE
from utils.checks.lab04.models import DEEP, FROZEN, TIED, UNUSED, WEIGHED, Model
from utils.checks.lab04.numbers import groups_of, judge_returned, judge_weights
from utils.checks.lab04.training import Case, Trained, observe
from utils.checks.ranks import run_cases
from utils.checks.verdict import Mistake

MICRO_BATCHES = (1, 1, 1, 3, 1, 1)


def _in_bf16(model: Model) -> Model:
    return replace(model, dtype=torch.bfloat16)


CASES = (
    Case(WEIGHED, "small Adam", weighed=True, micro_batches=MICRO_BATCHES, communicates=False),
    *(Case(_in_bf16(model), "small SGD", micro_batches=MICRO_BATCHES) for model in (DEEP, TIED, FROZEN, UNUSED)),
)


def verify(answer: Any) -> str:
    cases = {case.name: partial(observe, case, lambda model, built: built, ONE.at) for case in CASES}
    seen = run_cases(answer, cases, 1)
    for number, case in enumerate(CASES):
        with on_case(case.name, first=not number):
            judge(case, [each.value for each in seen[case.name]])
    return (
        "after each of 6 steps of Adam and of SGD the weights are a single process's, within 5 % of the way that these "
        "have gone, though a step is too small for bf16 to show; also with 3 micro-batches, tied weights, frozen and "
        "unused parameters. After backward 16 B exist for each parameter, within 1 %."
    )


def judge(case: Case, trained: Sequence[Trained]) -> None:
    """In the notebook: the weights beside the twin's, then the bytes."""
    if not trained[0].returned and not trained[0].optimized:
        raise Mistake("no optimizer is made: call `make_optimizer` with the fp32 masters, and its `step` in yours.")
    judge_returned(trained)
    model = case.model.build()
    whole = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if sum(trained[0].optimized) > whole and any(len(n) for n in _tied(model)):
        raise Mistake(
            f"the optimizer steps {sum(trained[0].optimized)} numbers, and the model has {whole}: a tied weight is "
            "counted twice. `model.parameters()` gives it once."
        )
    if trained[0].optimized and sum(trained[0].optimized) < whole:
        raise Mistake(
            f"the optimizer steps {sum(trained[0].optimized)} numbers, and {whole} of the model are trainable: every "
            "parameter has a master, biases too."
        )
    names = {name for name, p in model.named_parameters() if p.requires_grad}
    for name, before in trained[0].weights[0].items():
        frozen = name in dict(model.named_parameters()) and name not in names
        if frozen and not torch.equal(before, trained[0].weights[-1][name]):
            raise Mistake(f"`{name}` is frozen, and has changed.")
    judge_weights(case, trained, groups_of(model, [[p for p in model.parameters() if p.requires_grad]]))
    if case.weighed:
        _judge_bytes(trained[0])


def _tied(model: nn.Module) -> list[str]:
    """Names under which a parameter appears once more."""
    every = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    return sorted(set(every) - {name for name, _ in model.named_parameters()})


def _judge_bytes(trained: Trained) -> None:
    allowed = ONE.law(1) * (1 + TOLERANCE) + COUNTER * 2 * LAYERS
    for samples in trained.samples:
        if samples["step"].gradients:
            continue  # zeros in bf16: they are counted below, after the next backward
        left = samples["step"].total - (allowed - 2 * PSI)
        if left > 0:
            _too_much(left, samples["step"].optimizer, "after `step()`, where 2 + 12 B are enough")
    for samples in trained.samples:
        more = samples["backward"].total - allowed
        if more > 0:
            _too_much(more, samples["backward"].optimizer, "when backward ends, where 2 + 2 + 12 B are enough")
        peak = samples["step"].peak - allowed - 4 * PSI
        if peak > 0:
            raise Mistake(
                f"the weights are right, but inside `step()` {peak / PSI:.1f} B for each parameter exist beyond 16 B "
                "and the fp32 gradients (4 B): another copy of everything is made."
            )


def _too_much(more: float, optimizer: int, place: str) -> None:
    if optimizer > 12 * PSI * (1 + TOLERANCE) + COUNTER * 2 * LAYERS:
        what = f"masters and moments take {optimizer / PSI:.1f} B."
    else:
        what = "they are no weights, masters or moments. Do the masters keep their fp32 gradients, or is there a copy?"
    raise Mistake(f"the weights are right, but {more / PSI:.1f} B for each parameter too much exist {place}: {what}")
