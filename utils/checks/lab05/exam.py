"""Lab 04's exam of sharded weights, with this lab's models, and the unit named whose gradients never arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from utils.checks.lab04.memory import ZERO3
from utils.checks.lab04.stages import Exam
from utils.checks.lab04.suspects import Slices, moved
from utils.checks.lab04.training import Case, Trained
from utils.checks.lab04.twin import twin
from utils.checks.lab05.models import TRAPS, units
from utils.checks.lab05.running import is_empty, learners, run
from utils.checks.ranks import Mark, Seen
from utils.checks.verdict import Mistake


@dataclass(frozen=True)
class UnitExam(Exam):
    """Judges units instead of layers and buckets."""

    def run(self, answer: Any, cases: Mapping[str, Callable[..., Trained]], ranks: int) -> dict[str, list[Seen]]:
        return run(answer, cases, ranks)

    def judge(self, case: Case, seen: Sequence[Seen]) -> None:
        if case.optimizer == "SGD":
            self.judge_missing(case, [each.value for each in seen])
            self._judge_order(case, [each.value for each in seen])
        super().judge(case, seen)

    def _judge_order(self, case: Case, trained: Sequence[Trained]) -> None:
        """Raise Mistake if after a step the weights are near to the first ones with their slices in another order."""
        if any(len(each.weights) < 2 for each in trained):
            return
        n, (before, after) = len(trained), trained[0].weights[:2]
        groups = [group for group in self.groups(case.model) if before.keys() >= set(group)]
        names = [name for group in groups for name in group]
        slices = Slices(groups, {name: before[name].shape for name in names}, n)
        far = _distance(after, before, names)
        for words, order in orders(n):
            turned = slices.changed({name: after[name] for name in names}, lambda rows, _, order=order: rows[order])
            if _distance(turned, before, names) < far / 4:
                raise Mistake(wrong_order(words))

    def called(self, unit: int, units: int) -> str:
        """A unit in words."""
        where = {units - 1: ", the last of the forward,", 0: ", the first of the forward,"}
        return f"unit {unit}{where.get(unit, '')}"

    def judge_missing(self, case: Case, trained: Sequence[Trained]) -> None:
        """Raise Mistake if some units move as they should, and others never, though their gradients are not zero."""
        if any(each.returned or each.past or not each.optimized for each in trained):
            return
        groups, steps = self.groups(case.model), twin(case, len(trained))
        still, moves = [], 0
        for number, group in enumerate(groups):
            names = [name for name in group if name in trained[0].weights[0]]
            wanted = any(whole[n] is not None and whole[n].any() for whole in steps.whole for n in names)
            got = any(g.any() for each in trained for g in moved(each.weights[0], each.weights[-1], names).values())
            moves += got
            if wanted and not got:
                still.append(number)
        if not moves or not still:
            return
        unit = still[-1]
        unused = any(whole[name] is None for whole in steps.whole for name in groups[unit])
        raise Mistake(
            f"the weights of {self.called(unit, len(groups))} never move, and others do: its gradients are missing. "
            + (
                "One of its parameters is not used, so that it never becomes ready: `step()` is to reduce what is left."
                if unused
                else "Is it reduced when its last gradient is ready, and given to the optimizer?"
            )
        )


def unless_empty(case: Callable[[Any, Mark], Trained], answer: Any, mark: Mark) -> Trained | None:
    """In a rank: the case, or None if a module computes with weights that have no memory."""
    try:
        return case(answer, mark)
    except RuntimeError as error:
        if not is_empty(error) or learners(error):
            raise
        return None


def judge_missing_first(exam: UnitExam, case: Case, trained: Sequence[Seen], lives: Sequence[Seen]) -> None:
    """`exam.judge_missing`, where the case came to its end and no unit stays gathered past a step: that comes first."""
    stuck = any(m.phase == "step" and m.unit < 0 and m.whole for each in lives for m in each.value.moments)
    if not stuck and all(each.value is not None for each in trained):
        exam.judge_missing(case, [each.value for each in trained])


def orders(ranks: int) -> list[tuple[str, list[int]]]:
    """In words and as numbers: plausible wrong orders of so many slices."""
    turned = [(f"beginning with rank {k}'s", [(k + r) % ranks for r in range(ranks)]) for k in range(1, ranks)]
    return [("the last rank's first", list(reversed(range(ranks)))), *turned]


def wrong_order(words: str) -> str:
    return f"the slices are gathered in the wrong order, {words}. Slice r of the buffer is rank r's."


def _distance(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor], names: Sequence[str]) -> float:
    return sum((a[name].double() - b[name].double()).square().sum().item() for name in names) ** 0.5


STAGE = replace(ZERO3, step=4)  # so much that one tensor may be made of all fp32 gradients
EXAM = UnitExam(
    STAGE,
    units,
    passes=lambda k: 3 * k,
    text="two all-gathers and a reduce-scatter for each micro-batch send",
    remedy="Reduce-scatter each unit's: a rank needs the sum of its own slice alone.",
    traps=TRAPS,
)
