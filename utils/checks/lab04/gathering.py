"""04.zero3: weights gathered for each layer's forward and backward, and freed."""

from __future__ import annotations

from typing import Any

from utils.checks.lab04.memory import ZERO3
from utils.checks.lab04.stages import AS_THE_TWIN, Exam, layers

EXAM = Exam(
    ZERO3,
    layers,
    passes=lambda k: 3 * k,
    text="two all-gathers and a reduce-scatter for each micro-batch send",
    remedy="Reduce-scatter each layer's: a rank needs the sum of its own slice alone.",
)


def verify(answer: Any) -> str:
    EXAM.verify(answer)
    return (
        f"{AS_THE_TWIN} On 4 ranks each holds 16Ψ/N after backward and after the "
        "step, within 1 %, gathers no more than two layers at a time, and sends 3 (N - 1)/N S for each micro-batch."
    )
