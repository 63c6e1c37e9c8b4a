"""05.fsdp and 05.prefetch: lab 04's exam of sharded weights, then the order of events and frozen units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utils.checks.lab01.cases import on_case
from utils.checks.lab04.memory import ZERO3
from utils.checks.lab04.stages import AS_THE_TWIN, Exam
from utils.checks.lab04.training import Case, Trained
from utils.checks.lab05.life import judge_life, observe_training
from utils.checks.lab05.models import FROZEN, LIFE, TRAPS, units
from utils.checks.ranks import Seen, run_cases
from utils.checks.verdict import Mistake

EXAM = Exam(
    ZERO3,
    units,
    passes=lambda k: 3 * k,
    text="two all-gathers and a reduce-scatter for each micro-batch send",
    remedy="Reduce-scatter each unit's: a rank needs the sum of its own slice alone.",
    traps=TRAPS,
)
FROZEN_CASE = Case(FROZEN, "SGD", micro_batches=(1, 1))


@dataclass(frozen=True)
class Lifecycle:
    """How an answer is judged. ahead: the next unit's gather must be under way while one computes."""

    ahead: bool

    def verify(self, answer: Any) -> None:
        """Raise Mistake, naming it, or return."""
        EXAM.verify(answer)
        cases = {LIFE.name: observe_training, FROZEN.name: EXAM.observer(FROZEN_CASE)}
        for ranks in (2, 4):
            seen = run_cases(answer, cases, ranks, true_reduce_scatter=True)
            with on_case(LIFE.name, seen[LIFE.name], first=True):
                judge_life(seen[LIFE.name], self.ahead)
            with on_case(FROZEN.name, seen[FROZEN.name]):
                judge_frozen(seen[FROZEN.name])


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


PLAIN, AHEAD = Lifecycle(ahead=False), Lifecycle(ahead=True)
_HELD = (
    "On 4 ranks each holds 16Ψ/N after backward and after the step, within 1 %, and sends 3 (N - 1)/N S for each "
    "micro-batch. "
)


def verify_fsdp(answer: Any) -> str:
    PLAIN.verify(answer)
    return (
        f"{AS_THE_TWIN} {_HELD}A unit is gathered once for its forward, once for its backward, and freed after each; "
        "an evaluation leaves nothing gathered; frozen units reduce nothing."
    )


def verify_prefetch(answer: Any) -> str:
    AHEAD.verify(answer)
    return (
        f"{AS_THE_TWIN} {_HELD}While a unit computes, in forward, backward and evaluation, the gather of the next one "
        "is issued and not waited for, and no other unit is gathered."
    )
