"""05.fsdp and 05.prefetch: what is made, the order of events, lab 04's exam of sharded weights, and frozen units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.stages import AS_THE_TWIN, SGD_CASE
from utils.checks.lab04.training import Case, Trained
from utils.checks.lab05.exam import EXAM, judge_missing_first, unless_empty
from utils.checks.lab05.life import PLAIN, Trial, judge_returned, observe_life
from utils.checks.lab05.lifecycle import judge_life
from utils.checks.lab05.made import judge_start, observe_start
from utils.checks.lab05.models import FROZEN, LIFE
from utils.checks.lab05.running import run
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake

FROZEN_CASE = Case(FROZEN, "SGD", micro_batches=(1, 1))


@dataclass(frozen=True)
class Lifecycle:
    """How an answer is judged. ahead: the next unit's gather must be under way while one computes."""

    ahead: bool

    def verify(self, answer: Any) -> None:
        """Raise Mistake, naming it, or return."""
        judge_made(answer, PLAIN)
        cases = {LIFE.name: partial(observe_life, PLAIN), SGD_CASE.name: partial(unless_empty, EXAM.observer(SGD_CASE))}
        seen = run(answer, cases, 4)
        with on_case(LIFE.name, seen[LIFE.name], first=True):
            for each in seen[LIFE.name]:
                judge_returned(each.value, "the function `step`")
            judge_missing_first(EXAM, SGD_CASE, seen[SGD_CASE.name], seen[LIFE.name])
            judge_life(seen[LIFE.name], self.ahead)
        EXAM.verify(answer)
        seen = run(answer, {FROZEN.name: EXAM.observer(FROZEN_CASE)}, 2)[FROZEN.name]
        with on_case(FROZEN.name, seen):
            judge_frozen(seen)


def judge_made(answer: Any, trial: Trial) -> None:
    """Raise Mistake if, before anything computes, an optimizer has other numbers than this rank's shards."""
    case = partial(observe_start, trial.model.build, trial.call)
    groups = trial.watched(trial.model.build())[1]
    judge_start(run(answer, {trial.model.name: case}, 2)[trial.model.name], groups)


def judge_frozen(seen: Sequence[Seen]) -> None:
    """Raise Mistake if gradients of frozen units are reduced, or an optimizer has their slices."""
    n = len(seen)
    groups = [[p for p in unit.parameters() if p.requires_grad] for unit in FROZEN.build()]
    lengths = [-(-sum(p.numel() for p in group) // n) for group in groups]
    padded = 4 * n * sum(lengths)  # bytes
    for each in seen:
        trained: Trained = each.value
        if sum(trained.optimized) > sum(lengths):
            raise Mistake(
                f"the optimizer has {sum(trained.optimized)} numbers of this rank, and the units that train have "
                f"{sum(lengths)}: a frozen unit needs no optimizer state."
            )
        for step in range(len(FROZEN_CASE.micro_batches)):
            ops = [op for label, op in each.issued if label.startswith(f"step {step},")]
            reduced = sum(op.bytes for op in ops if op.kind == "reduce_scatter")
            if reduced > padded:
                raise Mistake(
                    f"{reduced} B of gradients are reduce-scattered in a step, and the units that train have {padded} "
                    "B: a frozen unit has no gradients to reduce."
                )


_HELD = (
    "On 4 ranks each holds 16Ψ/N after backward and after the step, within 1 %, and sends 3 (N - 1)/N S for each "
    "micro-batch. "
)


def verify_fsdp(answer: Any) -> str:
    Lifecycle(ahead=False).verify(answer)
    return (
        f"{AS_THE_TWIN} {_HELD}A unit is gathered once for its forward, once for its backward, and freed after each; "
        "an evaluation leaves nothing gathered; frozen units reduce nothing."
    )


def verify_prefetch(answer: Any) -> str:
    Lifecycle(ahead=True).verify(answer)
    return (
        f"{AS_THE_TWIN} {_HELD}While a unit computes, in forward, backward and evaluation, the gather of the next one "
        "is issued and not waited for, and no other unit is gathered."
    )
