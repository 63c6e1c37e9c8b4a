"""05.accumulate: gradients kept whole over the micro-batches of a step, and reduced in the last one alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.stages import AS_THE_TWIN, SGD_CASE
from utils.checks.lab04.training import Case, Trained, observe
from utils.checks.lab05.exam import EXAM, UnitExam, judge_missing_first, unless_empty
from utils.checks.lab05.life import PLAIN, Life, judge_returned, observe_life, section
from utils.checks.lab05.lifecycle import judge_life
from utils.checks.lab05.models import LIFE, sizes
from utils.checks.lab05.running import run
from utils.checks.lab05.training import judge_made
from utils.checks.ranks import Mark, Seen
from utils.checks.verdict import Mistake

MICRO = (False, False, True)
TRIAL = replace(PLAIN, micro=MICRO)
SELDOM = replace(PLAIN, micro=(None, False, None))  # it is told once in a step, and after the first micro-batch
SELDOM_NAME = "a model whose switch is told once in a step"
REDUCES = ("reduce_scatter", "all_reduce", "reduce", "all_to_all")


@dataclass(frozen=True)
class Synced:
    """An answer as lab 04's exam calls it: before each forward it hears whether the micro-batch is its step's last."""

    answer: Any
    micro_batches: tuple[int, ...]

    def __call__(self, units: list[nn.Module], make_optimizer: Any) -> Any:
        returned = self.answer(units, make_optimizer)
        if not isinstance(returned, tuple) or len(returned) != 2 or not all(callable(each) for each in returned):
            return returned
        step, set_sync = returned
        last = iter([number == k - 1 for k in self.micro_batches for number in range(k)])

        def before(*_: Any) -> None:
            if torch.is_grad_enabled():
                set_sync(next(last, True))

        units[0].register_forward_pre_hook(before)
        return step


class AccumulationExam(UnitExam):
    """Judges `step` while somebody says which micro-batch is the last."""

    def observer(self, case: Case) -> Callable[..., Trained]:
        return partial(_observe, _alone(case), self.arguments, self.stage.at)

    def judge(self, case: Case, seen: Sequence[Seen]) -> None:
        super().judge(_alone(case), seen)


def _alone(case: Case) -> Case:
    """Where everything is weighed, one micro-batch in each step: whole gradients are judged by `judge_kept`."""
    return replace(case, micro_batches=(1, 1)) if case.weighed else case


def _observe(case: Case, arguments: Any, law: Any, answer: Any, mark: Mark) -> Trained:
    return observe(case, arguments, law, Synced(answer, case.micro_batches), mark)


SYNCED_EXAM = AccumulationExam(EXAM.stage, EXAM.arguments, EXAM.passes, EXAM.text, EXAM.remedy, traps=EXAM.traps)


def verify(answer: Any) -> str:
    judge_made(answer, TRIAL)
    cases = {
        LIFE.name: partial(observe_life, TRIAL),
        SELDOM_NAME: partial(observe_life, SELDOM),
        SGD_CASE.name: partial(unless_empty, SYNCED_EXAM.observer(SGD_CASE)),
    }
    seen = run(answer, cases, 4)
    with on_case(LIFE.name, seen[LIFE.name], first=True):
        lives: list[Life] = [each.value for each in seen[LIFE.name]]
        for life in lives:
            judge_returned(life, "the functions `(step, set_sync)`")
        judge_missing_first(SYNCED_EXAM, SGD_CASE, seen[SGD_CASE.name], seen[LIFE.name])
        judge_reductions(seen[LIFE.name])
        judge_life(seen[LIFE.name], ahead=False, micro=len(MICRO))
        judge_kept(lives)
    try:
        SYNCED_EXAM.verify(answer)
    except Mistake as mistake:
        raise _early(lives) or mistake from None
    judge_switch(seen[SELDOM_NAME])  # last: who loses gradients on the way loses them here too
    return (
        f"{AS_THE_TWIN} Of 3 micro-batches the first two reduce nothing and keep whole gradients, S; the last reduces "
        "each unit's sum once: (2 · 3 + 1) (N - 1)/N S sent in place of 3 · 3. Weights are gathered and freed as "
        "before."
    )


def judge_reductions(seen: Sequence[Seen]) -> None:
    """Raise Mistake unless gradients are reduced in the last micro-batch, and there alone, each unit's once."""
    for each in seen:
        for label, op in each.issued:
            if op.kind not in REDUCES or "backward" not in label:
                continue
            micro = int(label.rpartition(" ")[2]) if label[-1].isdigit() else 0
            if not MICRO[micro]:
                raise Mistake(
                    f"after `set_sync(False)` the backward of micro-batch {micro} issues {op.kind} all the same: until "
                    "`set_sync(True)` gradients are kept, and none are sent."
                )
        last = [op for label, op in each.issued if label.endswith(f"backward {len(MICRO) - 1}") and op.kind in REDUCES]
        if not last:
            raise Mistake(
                "after `set_sync(True)` the backward reduces nothing: each unit's sum is to be reduced as soon as its "
                "last gradient is ready, not in `step()`."
            )
        for unit, size in enumerate(sizes()):
            steps = sum(op.bytes == size for op in last) / 2
            if steps > 1:
                raise Mistake(
                    f"unit {unit} is reduced {steps:.0f} times in the last micro-batch; the sum of all needs one "
                    "reduce-scatter."
                )


def judge_switch(seen: Sequence[Seen]) -> None:
    """Raise Mistake unless the switch is on at first, and then stays as it was told, also over a step."""
    for each in seen:
        reducing = {label for label, op in each.issued if op.kind in REDUCES}
        if section(0, "backward") not in reducing:
            raise Mistake(
                "as long as `set_sync` was never called a backward is to reduce its gradients, as in `fsdp`; yours "
                "reduces nothing."
            )
        if section(0, "step") not in reducing:
            raise Mistake(
                "with `set_sync(False)` up to the step nothing is reduced at all: `step()` reduces what is still there."
            )
        if section(1, "backward") in reducing:
            raise Mistake(
                "after `set_sync(False)` and a step the next backward reduces its gradients: the switch stays as it "
                "was told last, also over a `step()`."
            )


def judge_kept(lives: Sequence[Life]) -> None:
    """Raise Mistake if the gradients that were kept stay after they were reduced."""
    for life in lives:
        for moment in life.moments:
            if moment.phase == "step" and moment.kept:
                raise Mistake(
                    f"after `step()` {moment.kept / sum(sizes()):.2f} S of whole gradients are still there: they are "
                    "spent when they are reduced."
                )


def _early(lives: Sequence[Life]) -> Mistake | None:
    """Where numbers are wrong: whether a unit was reduced before its last gradient of a backward was ready."""
    for life in lives:
        for moment in life.moments:
            if moment.lacking:
                return Mistake(
                    f"unit {moment.unit} is reduced before its last gradient of the micro-batch is ready: "
                    "`all(p.grad is not None …)` is true from its first one on, for the `.grad`s of the micro-batches "
                    "before are there. Count, in each backward, how many are ready."
                )
    return None
