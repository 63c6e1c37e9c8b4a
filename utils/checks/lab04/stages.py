"""Judges a stage of ZeRO as a whole: numbers first, then what was sent, then what existed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.memory import LAYERS, Stage, judge_memory, judge_rest
from utils.checks.lab04.models import DEEP, SIZES, TRAPS, WEIGHED, Model
from utils.checks.lab04.numbers import (
    groups_of,
    judge_gradients,
    judge_returned,
    judge_sharded,
    judge_weights,
)
from utils.checks.lab04.suspects import Groups
from utils.checks.lab04.traffic import judge_kinds, judge_too_little, judge_traffic
from utils.checks.lab04.training import Case, Trained, observe
from utils.checks.ranks import Seen, run_cases
from utils.checks.verdict import Mistake

SGD_CASE, ADAM_CASE = Case(DEEP, "SGD"), Case(DEEP, "Adam")
WEIGHED_CASE = Case(WEIGHED, "small Adam", weighed=True, micro_batches=(1, 2))
AS_THE_TWIN = (
    "over 2 steps on 2, 3 and 4 ranks the gradients of each are a single process's within 1e-5, also with 3 "
    "micro-batches, tied weights, frozen and unused parameters, sizes that N does not divide; with Adam the weights "
    "stay within 1e-4 of the way gone, in bf16 within 5 %."
)
_EMPTIED = (
    " So ends who reads or writes a view after its storage was emptied: keep a copy of the slice (`mine.clone()`), and "
    "gather before use."
)


@dataclass(frozen=True)
class Exam:
    """How one stage is judged.

    arguments  (model, built) -> what the answer is called with: buckets or layers
    passes     micro-batches of a step -> how often the bytes of all weights go around
    text       the law of that in words
    remedy     where gradients are all-reduced
    traps      models that are tried besides
    """

    stage: Stage
    arguments: Callable[[Model, nn.Module], Any]
    passes: Callable[[int], int]
    text: str
    remedy: str
    also: Callable[[Case, Sequence[Seen]], None] = lambda case, seen: None
    traps: tuple[Model, ...] = TRAPS

    def groups(self, model: Model) -> Groups:
        """Names of the parameters that are sliced together."""
        built = model.build()
        found = self.arguments(model, built)
        if found and isinstance(found[0], nn.Module):
            found = [[p for p in layer.parameters() if p.requires_grad] for layer in found]
        return groups_of(built, [group for group in found if group])

    def verify(self, answer: Any) -> None:
        """Raise Mistake, naming it, or return."""
        first = (SGD_CASE, ADAM_CASE, WEIGHED_CASE)
        runs = (
            (4, first),
            (2, tuple(Case(trap, "SGD") for trap in self.traps)),
            (3, (Case(DEEP, "momentum"), Case(SIZES, "SGD"))),
        )
        for ranks, cases in runs:
            seen = self.run(answer, {c.name: self.observer(c) for c in cases}, ranks)
            for case in cases:
                with on_case(case.name, seen[case.name], first=case in (SGD_CASE, WEIGHED_CASE)):
                    self.judge(case, seen[case.name])

    def run(self, answer: Any, cases: Mapping[str, Callable[..., Trained]], ranks: int) -> dict[str, list[Seen]]:
        """Some cases in one launch."""
        try:
            return run_cases(answer, cases, ranks, true_reduce_scatter=True)
        except Mistake as mistake:
            raise Mistake(f"{mistake}{_EMPTIED if 'SIGSEGV' in str(mistake) else ''}") from None

    def observer(self, case: Case) -> Callable[..., Trained]:
        """What runs in a rank: (answer, mark) -> Trained."""
        return partial(observe, case, self.arguments, self.stage.at)

    def judge(self, case: Case, seen: Sequence[Seen]) -> None:
        """In the notebook: one case on all ranks."""
        trained, groups = [each.value for each in seen], self.groups(case.model)
        judge_returned(trained)
        judge_sharded(case, trained, groups)
        if case.optimizer == "SGD":
            judge_gradients(case, trained, groups)
        else:
            judge_weights(case, trained, groups)
        if case.weighed:
            judge_kinds(seen, case, self.remedy)
            self.also(case, seen)
            judge_rest(self.stage, trained)
            passes = [self.passes(k) for k in case.micro_batches]
            judge_traffic(seen, case, passes, self.text)
            judge_memory(self.stage, trained)
            # A layer that stays gathered from a forward on is spared a gather, and in the next forward another one.
            spared = 2 * self.stage.kept / LAYERS
            judge_too_little(seen, [p - spared * k for p, k in zip(passes, case.micro_batches, strict=True)], self.text)


def buckets(model: Model, built: nn.Sequential) -> list[list[nn.Parameter]]:
    return model.buckets(built)


def layers(model: Model, built: nn.Sequential) -> list[nn.Module]:
    return model.layers(built)
