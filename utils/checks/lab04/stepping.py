"""04.zero1: reduce-scatter the gradients, step the own slice, all-gather the weights."""

from __future__ import annotations

from typing import Any

from utils.checks.lab04.memory import ZERO1
from utils.checks.lab04.stages import AS_THE_TWIN, Exam, buckets

EXAM = Exam(
    ZERO1,
    buckets,
    passes=lambda k: 2,
    text="a reduce-scatter of the gradients and an all-gather of the weights send",
    remedy="Reduce-scatter: a rank needs the sum of its own slice alone.",
)


def verify(answer: Any) -> str:
    EXAM.verify(answer)
    return (
        f"{AS_THE_TWIN} On 4 ranks each holds 2Ψ + 2Ψ + 12Ψ/N after backward, "
        "within 1 %, and sends 2 (N - 1)/N S a step, however many micro-batches it has."
    )
