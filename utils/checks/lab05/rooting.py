"""05.root: a model with parameters of its own around its units, kept from forward to backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.memory import LAYERS
from utils.checks.lab04.models import Model
from utils.checks.lab04.numbers import groups_of
from utils.checks.lab04.stages import AS_THE_TWIN, SGD_CASE
from utils.checks.lab04.suspects import Groups
from utils.checks.lab04.training import Trained
from utils.checks.lab05.exam import STAGE, UnitExam, judge_missing_first, unless_empty
from utils.checks.lab05.life import SECTIONS, Life, Trial, judge_empty, judge_returned, observe_life, sizes_of
from utils.checks.lab05.lifecycle import ENDS, judge_gathers
from utils.checks.lab05.models import NESTED, ROOTED_TRAPS, owned, rooted_units
from utils.checks.lab05.running import run
from utils.checks.lab05.training import judge_made
from utils.checks.lab05.watching import Moment
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake

ROOT_LAYERS = 2  # of the model in bf16, its first and its last
ROOTED = replace(
    STAGE, forward=2 + ROOT_LAYERS, backward=5 + ROOT_LAYERS, kept=1 + ROOT_LAYERS, gathered=2 + ROOT_LAYERS
)


@dataclass(frozen=True)
class Spread:
    """An answer that takes (model, units) as one argument, as lab 04's exam calls it."""

    answer: Any

    def __call__(self, given: tuple[nn.Module, list[nn.Module]], make_optimizer: Any) -> Any:
        return self.answer(*given, make_optimizer)


class RootExam(UnitExam):
    """Judges a root and units."""

    def run(self, answer: Any, cases: Mapping[str, Callable[..., Trained]], ranks: int) -> dict[str, list[Seen]]:
        return super().run(Spread(answer), cases, ranks)

    def called(self, unit: int, units: int) -> str:
        return "the root" if unit == units - 1 else super().called(unit, 0)

    def groups(self, model: Model) -> Groups:
        built = model.build()
        groups = [[p for p in group if p.requires_grad] for group in owned(built, rooted_units(model, built))]
        return groups_of(built, [group for group in groups if group])


def with_root(model: Model, built: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    return built, rooted_units(model, built)


EXAM = RootExam(
    ROOTED,
    with_root,
    passes=lambda k: (3 - ROOT_LAYERS / LAYERS) * k,  # the root is gathered once
    text="two all-gathers of the units, one of the root and a reduce-scatter of both for each micro-batch send",
    remedy="Reduce-scatter each unit's: a rank needs the sum of its own slice alone.",
    traps=ROOTED_TRAPS,
)


def _watched(built: nn.Module) -> tuple[Sequence[nn.Module], Sequence[Sequence[nn.Parameter]]]:
    given = rooted_units(NESTED, built)
    return [*given, built], owned(built, given)


def _called(answer: Any, built: nn.Module, make_optimizer: Any) -> Any:
    return answer(built, rooted_units(NESTED, built), make_optimizer)


TRIAL = Trial(NESTED, _watched, _called)
OUTER, INNER, ROOT = 1, 2, 4  # numbers of the unit with one inside, of that one, and of the root
NAMES = ("unit 0", "unit 1", "unit 2, nested in unit 1,", "unit 3", "the root")
# Whose gather may be under way, or whose weights be there, while each computes.
_FORWARD = {0: {0, 1}, 1: {1, 2, 3}, 2: {1, 2, 3}, 3: {3}, ROOT: {0, 3}}
_BACKWARD = {0: {0}, 1: {0, 1}, 2: {0, 1, 2}, 3: {1, 2, 3}, ROOT: set()}


def verify(answer: Any) -> str:
    judge_made(answer, TRIAL)
    cases = {
        NESTED.name: partial(observe_life, TRIAL),
        SGD_CASE.name: partial(unless_empty, partial(_spread, EXAM.observer(SGD_CASE))),
    }
    seen = run(answer, cases, 4)
    with on_case(NESTED.name, seen[NESTED.name], first=True):
        for each in seen[NESTED.name]:
            judge_returned(each.value, "the function `step`")
        judge_missing_first(EXAM, SGD_CASE, seen[SGD_CASE.name], seen[NESTED.name])
        judge_root(seen[NESTED.name])
    EXAM.verify(answer)
    return (
        f"{AS_THE_TWIN} The root is gathered once, kept from forward to the end of backward, and freed after an "
        "evaluation; each unit, nested ones too, is gathered for its forward and its backward and freed after each; "
        "so each rank sends (3 S - S_root) (N - 1)/N. Weights tied across units are sharded once."
    )


def _spread(case: Callable[..., Any], answer: Any, mark: Any) -> Any:
    return case(Spread(answer), mark)


def judge_root(seen: Sequence[Seen]) -> None:
    """Raise Mistake unless root and units live as they should."""
    sizes = sizes_of(TRIAL)
    for each in seen:
        life: Life = each.value
        judge_empty(life, ROOT)
        _judge_root_gathers(each, sizes[ROOT])
        for at, moment in enumerate(life.moments):
            if moment.unit < 0:
                _judge_end(moment)
            else:
                _judge_inside(life.moments, at)
        judge_gathers(each, sizes, names=NAMES)


def _judge_root_gathers(seen: Seen, size: int) -> None:
    for label, op in seen.issued:
        if label.endswith("backward") and op.kind == "all_gather" and op.bytes == size:
            raise Mistake(
                "the root is gathered again for backward: its backward begins where its forward has ended, with the "
                "head. Keep it after the forward; it costs its bytes and saves its gather."
            )


def _judge_end(moment: Moment) -> None:
    kept = set(moment.whole)
    if moment.phase == "forward":
        if ROOT not in kept:
            raise Mistake(
                "the forward is over, and the root is not gathered any more: its backward comes next. Keep it until "
                "its gradients are reduced."
            )
        kept -= {ROOT, 3}  # unit 3 is the last of the forward: its backward comes soon
    if not kept:
        return
    names = ", ".join(NAMES[unit].removesuffix(",") for unit in sorted(kept))
    if kept == {ROOT} and moment.phase == "evaluation":
        raise Mistake(
            f"{ENDS['evaluation']}, and the root is gathered: no backward will come that frees it. Look at "
            "`torch.is_grad_enabled()` when its forward is over."
        )
    if kept == {ROOT} and moment.phase == "backward":
        raise Mistake(f"{ENDS['backward']}, and the root is gathered: free it when its gradients are reduced.")
    raise Mistake(
        f"{ENDS[moment.phase]}, and the weights of {names} are gathered: each rank is to hold its shards alone."
    )


def _judge_inside(moments: Sequence[Moment], at: int) -> None:
    moment = moments[at]
    unit, where = moment.unit, SECTIONS[moment.phase]
    allowed = (_BACKWARD if moment.phase == "backward" else _FORWARD)[unit] | {ROOT}
    if unit == ROOT and not moment.over:
        allowed = allowed | {0}  # a prefetch
    if ROOT not in moment.whole:
        raise Mistake(
            f"during the {where} of {NAMES[unit].removesuffix(',')} the root is not gathered: what is in it, such as "
            "tied weights, is used from the first module to the last."
        )
    more = sorted(moment.whole - allowed)
    if len(moment.whole) == len(NAMES):
        raise Mistake(
            f"all units are gathered during the {where} of {NAMES[unit].removesuffix(',')}: only the root is kept."
        )
    if more:
        done = any(
            m.unit == more[0] and m.over for m in moments[:at] if (m.step, m.phase) == (moment.step, moment.phase)
        )
        why = "and its own is over: it is freed too late" if done else "and its turn comes later"
        raise Mistake(f"during the {where} of {NAMES[unit].removesuffix(',')}, {NAMES[more[0]]} is gathered, {why}.")
