"""Bytes that a stage of ZeRO may hold, and the name of what it holds besides.

In bf16 with Adam the law of each stage is that of `theory.memory`, under the ZeRO paper's recipe. To it come, named:
the step counters (4 B for each tensor that an optimizer steps), activations, and what a moment needs for its own work,
counted in buckets or layers. More than that is a mistake, less is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from utils.checks.lab04.models import WEIGHED
from utils.checks.lab04.training import Sample, Trained
from utils.checks.verdict import Mistake
from utils.theory.memory import model_states

TOLERANCE = 0.01
COUNTER = 4  # bytes of a step counter
PSI = sum(p.numel() for p in WEIGHED.build().parameters())
LAYERS = len(WEIGHED.layers(WEIGHED.build()))
WHOLE = 2 * PSI  # bytes of all weights, and of all gradients, in bf16
UNIT = WHOLE / LAYERS  # bytes of one layer's weights or of one bucket's gradients


@dataclass(frozen=True)
class Stage:
    """What one stage may hold beyond its law.

    strategy   the name of its law in `theory.memory`
    text       the law in words
    forward, backward, step   whole layers or buckets that may exist during each, beyond the law
    kept       whole layers that may be gathered when a forward ends, and
    gathered   at any time
    """

    strategy: str
    text: str
    forward: float
    backward: float
    step: float
    kept: float = 0
    gathered: float = math.inf

    def law(self, world_size: int) -> float:
        """Bytes of model states on each rank: of a model whose layers N divides, exact."""
        return model_states(PSI, world_size, self.strategy).total

    def at(self, world_size: int, step: int, moment: str) -> float:
        """What may exist when a moment of a step is over: before the first step of all there are no moments yet."""
        early = step == 0 and moment != "step"
        gathered = self.kept * UNIT if moment == "forward" else 0
        return self.law(world_size) + gathered + (-8 * PSI / world_size if early else COUNTER * LAYERS)


ONE = Stage("ddp", "2Ψ + 2Ψ + 12Ψ", forward=0, backward=0, step=0)  # on one rank, where nothing is sharded
ZERO1 = Stage("zero1", "2Ψ + 2Ψ + 12Ψ/N", forward=0, backward=3, step=2)
ZERO2 = Stage("zero2", "2Ψ + 14Ψ/N", forward=0, backward=3, step=2)
ZERO3 = Stage("zero3", "16Ψ/N", forward=2, backward=5, step=2, kept=1, gathered=2)


def judge_rest(stage: Stage, trained: Sequence[Trained], names: Sequence[str] = ()) -> None:
    """Raise Mistake if a stage that shards weights has them whole after a step: told before all else that is wrong.

    names: of the ranks, where these are not all; "rank 0 of 2" if left out.
    """
    n = len(trained)
    names = names or _ranks(n)
    for rank, each in enumerate(trained):
        for step, samples in enumerate(each.samples):
            if stage.kept and samples["step"].weights > WHOLE / n + UNIT / 2:
                _whole_at_rest(samples["step"], f"in step {step} on {names[rank]}")


def judge_memory(stage: Stage, trained: Sequence[Trained], names: Sequence[str] = ()) -> None:
    """Raise Mistake if a rank holds, at rest or at a peak, more than the stage's law and the named buffers.

    names: as in `judge_rest`.
    """
    n = len(trained)
    names = names or _ranks(n)
    tolerance = stage.law(n) * TOLERANCE
    for rank, each in enumerate(trained):
        # A bucket, or a layer's, that is on its way may stay so into the next moment.
        carried = (1 + 1 / n) * UNIT if any(s.flying for samples in each.samples for s in samples.values()) else 0
        for step, samples in enumerate(each.samples):
            place = f"in step {step} on {names[rank]}"
            forward, backward, after = (samples[moment] for moment in ("forward", "backward", "step"))
            excess = forward.total - stage.at(n, step, "forward") - tolerance - each.activations - carried
            if stage.kept and excess > 0:
                _kept_after_forward(stage, forward, excess, place)
            excess = backward.total - stage.at(n, step, "backward") - tolerance - (carried if backward.flying else 0)
            if excess > 0:
                _after_backward(stage, backward, excess, place, n)
            excess = after.total - stage.at(n, step, "step") - tolerance - (carried if after.flying else 0)
            if excess > 0:
                _after_step(stage, after, excess, place, n)
            for moment, sample in samples.items():
                if sample.gathered > (stage.gathered + 1 / 2) * UNIT:
                    _peak(stage, moment, sample.gathered - stage.gathered * UNIT, place)
            slices = 4 * PSI / n  # fp32 gradients of this rank's slices
            for moment, sample, more in (
                ("forward", forward, each.activations + stage.forward * UNIT),
                ("backward", backward, each.activations + (stage.backward + 1 / n) * UNIT),
                ("step", after, slices + (stage.step + 1 / n) * UNIT),
            ):
                excess = sample.peak - stage.at(n, step, moment) - tolerance - more - carried
                if excess > 0 and (step or moment != "forward"):  # at first a model's weights are whole
                    _peak(stage, moment, excess, place)


def _ranks(n: int) -> list[str]:
    return [f"rank {rank} of {n}" for rank in range(n)]


def _bytes(amount: float) -> str:
    """Of what is judged, to a hundredth of all weights: what an allocator or a thread adds must not change a text."""
    return f"{amount / WHOLE:.2f} S"


def _kept_after_forward(stage: Stage, sample: Sample, excess: float, place: str) -> None:
    raise Mistake(
        f"the numbers are right, but {place}, when the forward ends, about {round(sample.weights / UNIT)} of {LAYERS} "
        "layers are still gathered: a layer's weights are to be freed after its forward, and gathered again for its "
        "backward."
        if sample.weights > stage.kept * UNIT
        else f"the numbers are right, but {place}, when the forward ends, {_bytes(excess)} too much exist that no "
        "parameter names (S: the bytes of all weights): autograd keeps views of the weights. Empty the storage itself."
    )


def _after_backward(stage: Stage, sample: Sample, excess: float, place: str, n: int) -> None:
    """The named parts first, then what has no name."""
    start = f"the numbers are right, but {place}, when backward ends,"
    fair = 12 * PSI / n
    if sample.optimizer > fair * (1 + TOLERANCE) + COUNTER * LAYERS:
        raise Mistake(
            f"{start} masters and moments take {_bytes(sample.optimizer)}, where 12Ψ/N are {_bytes(fair)}: each rank "
            "is to keep those of its own slice alone."
        )
    if stage.strategy != "zero1" and sample.gradients > UNIT / 2:
        raise Mistake(
            f"{start} whole gradients of about {round(sample.gradients / UNIT)} of {LAYERS} buckets are still there: "
            "reduce each bucket as soon as it is full, and set its `.grad`s to None. Of gradients a rank keeps "
            "its slice."
        )
    if stage.strategy == "zero3" and sample.weights > WHOLE / n + UNIT / 2:
        raise Mistake(
            f"{start} about {round(sample.weights / UNIT)} of {LAYERS} layers are still gathered: free a layer's "
            "weights when its gradients are reduced."
        )
    _nameless(stage, sample, start, excess, n)


def _whole_at_rest(sample: Sample, place: str) -> None:
    raise Mistake(
        f"the numbers are right, but {place}, after `step()`, the whole weights of about "
        f"{round(sample.weights / UNIT)} of {LAYERS} layers are there: at rest a rank keeps its slice alone."
    )


def _after_step(stage: Stage, sample: Sample, excess: float, place: str, n: int) -> None:
    start = f"the numbers are right, but {place}, after `step()`,"
    if stage.strategy != "zero1" and sample.gradients > UNIT / 2:
        raise Mistake(f"{start} whole gradients are still there: they are spent.")
    _nameless(stage, sample, start, excess, n)


def _nameless(stage: Stage, sample: Sample, start: str, excess: float, n: int) -> None:
    if sample.master_gradients > 3 * PSI / n:
        raise Mistake(
            f"{start} the masters have fp32 gradients, 4Ψ/N: they are needed inside `step()` alone. What is kept from "
            "backward to step are slices in bf16, and after the step nothing (`optimizer.zero_grad()`)."
        )
    raise Mistake(
        f"{start} {_bytes(excess)} more exist than {stage.text} (S: the bytes of all weights), and they are no "
        "weights, `.grad`s, masters or moments: some other name, or a view such as a slice of a flat buffer, keeps a "
        "whole storage alive."
    )


def _peak(stage: Stage, moment: str, excess: float, place: str) -> None:
    what = {
        "forward": "gathers too many layers at once: one computes, and the next may be on its way",
        "backward": "gathers too many layers at once, or lets gradients pile up: free each bucket's before the next",
        "step": "makes copies of too much at once: work bucket by bucket",
    }[moment]
    raise Mistake(
        f"the numbers are right, but {place} your {moment.replace('step', '`step()`')} {what}. At its peak "
        f"{_bytes(excess)} more exist than {stage.text} and the buffers that it may need (S: the bytes of all weights)."
    )
