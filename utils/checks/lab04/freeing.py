"""04.zero2: gradients reduced during backward, bucket by bucket, and freed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from utils.checks.lab04.memory import WHOLE, ZERO2
from utils.checks.lab04.stages import AS_THE_TWIN, Exam, buckets
from utils.checks.lab04.traffic import ops_of
from utils.checks.lab04.training import Case
from utils.checks.ranks import Seen
from utils.checks.verdict import Mistake


def judge_moment(case: Case, seen: Sequence[Seen]) -> None:
    """Raise Mistake if nothing is reduced before backward is over."""
    for each in seen:
        for step in range(len(case.micro_batches)):
            early = sum(op.ring_bytes for op in ops_of(each, step, "backward"))
            late = [op for op in ops_of(each, step, "step") if op.kind == "reduce_scatter"]
            if early < WHOLE / 100 and late:
                raise Mistake(
                    "the numbers are right, but the gradients are reduced only after backward, in `step()`: until then "
                    "all of them exist whole. That is ZeRO-1. Reduce each bucket from the hook of the gradient that "
                    "fills it."
                )


EXAM = Exam(
    ZERO2,
    buckets,
    passes=lambda k: k + 1,
    text="a reduce-scatter in each backward and one all-gather of the weights send",
    remedy="Reduce-scatter each bucket: a rank needs the sum of its own slice alone.",
    also=judge_moment,
)


def verify(answer: Any) -> str:
    EXAM.verify(answer)
    return (
        f"{AS_THE_TWIN} On 4 ranks each holds 2Ψ + 14Ψ/N after backward, within "
        "1 %, never more than three buckets of gradients, and sends (k + 1)(N - 1)/N S a step of k micro-batches."
    )
