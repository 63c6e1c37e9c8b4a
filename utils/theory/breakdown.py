"""The memory of one GPU in training, part by part: a breakdown that adds up, and what fits.

Not in it: the allocator's fragmentation and rounding, the CUDA context, workspaces of cuBLAS and NCCL. They come on
top; a reserve of a tenth is a usual guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from utils.theory.activations import activation_bytes
from utils.theory.allocations import DEEPSPEED_BUCKET_ELEMENTS
from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import (
    check_amount,
    check_choice,
    check_one_of,
    check_share,
    check_whole,
    check_yes_or_no,
)
from utils.theory.kept import IMPLEMENTATIONS
from utils.theory.memory import GATHERING, model_states, named_recipe, sharing_ranks
from utils.theory.moments import Moment, Step
from utils.theory.moments_sharded import moments_of_sharded_weights
from utils.theory.moments_whole import moments_of_whole_weights
from utils.theory.optimizer_memory import OPTIMIZER_STEPS, all_step_counters, padded_states, temporaries
from utils.theory.recipes import Recipe
from utils.theory.units import GB, plain, shown

#: Field of `Moment` -> what it is called in tables and pictures.
PART_NAMES: dict[str, str] = {
    "weights": "weights",
    "gathered": "gathered weights",
    "gradients": "gradients",
    "master_weights": "master weights",
    "optimizer": "moments",
    "temporaries": "optimizer's temporaries",
    "activations": "activations",
    "logits": "logits",
    "working": "working memory",
    "buffers": "communication buffers",
}
_FSDP = ("fsdp", "hsdp")
_LONGEST = 2**50


@dataclass(frozen=True)
class Breakdown:
    """Bytes on one GPU in a training step. `parts` are those of the moment at which their sum, `total`, is largest.

    title: what is trained, and how. moments: of the step, in order; the last is the optimizer's step.
    """

    title: str
    moments: tuple[Moment, ...]

    @property
    def peak_moment(self) -> Moment:
        """The first moment with the largest total."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def parts(self) -> dict[str, float]:
        """The bytes of each part at the peak, by the names in `PART_NAMES`."""
        return self.peak_moment.parts

    @property
    def total(self) -> float:
        """The sum of `parts`: the peak."""
        return sum(self.parts.values())

    @property
    def peak(self) -> float:
        """The same as `total`."""
        return self.total

    @property
    def at_rest(self) -> float:
        """Model states with all gradients, at the optimizer's step but without what the step itself needs."""
        return sum(size for part, size in self.moments[-1].parts.items() if part not in ("activations", "temporaries"))

    def fits(self, memory: float, reserve: float = 0.0) -> bool:
        """Whether the peak fits `memory` bytes of a GPU, of which the share `reserve`, 0 to below 1, is kept free."""
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
        check_share("reserve", reserve)
        return self.total <= (1 - reserve) * plain(memory)

    def __repr__(self) -> str:
        return f"Breakdown({self.title}: {self.total / GB:,.3f} GB, {self.peak_moment.name})"

    def __str__(self) -> str:
        rows = [(PART_NAMES[part], size) for part, size in self.parts.items() if size]
        lines = [f"{name:<22} {size / GB:>12,.3f} GB {size / self.total:>7.1%}" for name, size in rows]
        return "\n".join(
            [
                self.title,
                f"at its largest: {self.peak_moment.name}",
                *lines,
                f"{'in all':<22} {self.total / GB:>12,.3f} GB {1:>7.1%}",
                f"{'model states alone':<22} {self.at_rest / GB:>12,.3f} GB {self.at_rest / self.total:>7.1%}",
            ]
        )

    def picture(self, memory: float | None = None) -> Any:
        """The same as a picture, with the memory of a GPU in bytes as a line if it is given."""
        from utils.views.breakdown import breakdown_picture  # the views know matplotlib; a law does not need it

        return breakdown_picture(self, memory)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.picture()._repr_mimebundle_(include, exclude)


def training_memory(
    model: Architecture,
    world_size: int,
    strategy: str,
    sequence: int,
    micro_batch: int = 1,
    recomputation: str = "none",
    shard_size: int | None = None,
    recipe: str | Recipe | None = None,
    flash_attention: bool = True,
    implementation: str = "torch",
    element_bytes: int | None = None,
    logit_bytes: int = 4,
    reduced_bytes: int | None = None,
    prefetch: bool = True,
    gradient_as_bucket_view: bool = True,
    bucket_elements: int | None = None,
    optimizer_step: str | None = None,
) -> Breakdown:
    """The memory of one GPU in a training step, with each layer wrapped as one unit where weights are sharded.

    Args:
        model, sequence, micro_batch, recomputation, flash_attention, implementation, logit_bytes: as for
            `activations.activation_bytes`.
        element_bytes: of an activation and of a gathered weight, 2 or 4; left out, what the recipe computes with: 4 in
            "fp32", "sgd" and "sgd-momentum", 2 in the others.
        world_size, strategy, shard_size, gradient_as_bucket_view: as for `memory.model_states`.
        recipe: as there; left out, "fsdp2" for fsdp and hsdp, "zero-paper" for the others.
        reduced_bytes: zero3, fsdp, hsdp: of a gradient while it is reduced, 2 or 4; left out, as the recipe
            communicates them.
        prefetch: zero3, fsdp, hsdp: whether the next unit is gathered while one computes its backward pass, as FSDP2
            does by default.
        bucket_elements: zero1, zero2: DeepSpeed's reduce_bucket_size, `DEEPSPEED_BUCKET_ELEMENTS` if left out.
        optimizer_step: what Adam's step allocates for a while, one of `OPTIMIZER_STEPS`. "foreach": the square roots of
            all second moments, 4 bytes for each parameter that the GPU updates. "for-loop": of one tensor after the
            other, two and that of the tensor before. "fused": nothing. Left out, "foreach" for ddp, fsdp and hsdp, as
            in PyTorch on GPUs, and "fused" for zero1 to zero3, as in DeepSpeed. SGD and 8-bit Adam need nothing.

    ddp, fsdp and hsdp: with the step counters of PyTorch's Adam, a recipe whose `foreach` is not 0; DeepSpeed and
    8-bit Adam keep plain numbers, SGD none. fsdp and hsdp: the rank with most, shards padded tensor by tensor.
    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    ranks = sharing_ranks(world_size, strategy, shard_size)
    used = named_recipe(("fsdp2" if strategy in _FSDP else "zero-paper") if recipe is None else recipe)
    element_bytes = used.computed if element_bytes is None else element_bytes
    kept = activation_bytes(
        model, sequence, micro_batch, recomputation, flash_attention, implementation, element_bytes, logit_bytes
    )
    _check_options(strategy, prefetch, reduced_bytes, bucket_elements)
    if optimizer_step is None:
        optimizer_step = "fused" if strategy.startswith("zero") else "foreach"
    check_choice("optimizer_step", optimizer_step, OPTIMIZER_STEPS)
    states = model_states(model.parameters, world_size, strategy, shard_size, used, gradient_as_bucket_view)
    if strategy in _FSDP:
        states = padded_states(model, ranks, used)
    if not strategy.startswith("zero") and used.foreach:
        states = replace(states, optimizer=states.optimizer + all_step_counters(model))
    tokens = int(sequence) * int(micro_batch)
    step = Step(
        model, IMPLEMENTATIONS[implementation], tokens, kept, states, used, int(element_bytes),
        used.communicated_gradients if reduced_bytes is None else int(reduced_bytes), prefetch, batch_bytes(tokens),
        DEEPSPEED_BUCKET_ELEMENTS if bucket_elements is None else int(bucket_elements),
        temporaries(model, strategy, ranks, used, optimizer_step),
    )  # fmt: skip
    if strategy in GATHERING:
        moments = moments_of_sharded_weights(step, ranks)
    else:
        moments = moments_of_whole_weights(step, strategy)
    recomputed = "" if recomputation == "none" else f", {recomputation} recomputation"
    title = (
        f"{strategy} on {int(world_size):,} GPU{'s' if world_size > 1 else ''}, {model.parameters:,} parameters, "
        f"{int(micro_batch):,} x {int(sequence):,} tokens{recomputed}"
    )
    return Breakdown(title, moments)


def max_micro_batch(
    model: Architecture, world_size: int, strategy: str, sequence: int, memory: float, **more: Any
) -> int:
    """The most sequences of that length at once on one GPU of `memory` bytes; 0 if not even one fits.

    The other arguments are those of `training_memory`.
    """
    _leave_out("micro_batch", more)
    return _largest(lambda n: training_memory(model, world_size, strategy, sequence, n, **more), memory)


def max_sequence(model: Architecture, world_size: int, strategy: str, memory: float, **more: Any) -> int:
    """The longest sequence, alone in its micro-batch unless `micro_batch` says otherwise; 0 if not even one token fits.

    It is no longer than the model has learned positions, if it has any.
    The other arguments are those of `training_memory`.
    """
    check_model(model)
    _leave_out("sequence", more)
    most = model.learned_positions or None
    return _largest(lambda n: training_memory(model, world_size, strategy, n, **more), memory, most)


def _leave_out(sought: str, more: dict[str, Any]) -> None:
    if sought in more:
        raise ValueError(f"{sought} is {shown(more[sought])}, but it is what is sought here: leave it out")


def _largest(breakdown: Any, memory: float, most: int | None = None) -> int:
    """The largest whole number, up to `most`, whose breakdown fits: doubled until it does not, then halved between."""
    if most is not None and breakdown(most).fits(memory):
        return most
    low, high = 0, 1
    while high != most and breakdown(high).fits(memory):
        low, high = high, 2 * high if most is None else min(2 * high, most)
        if high > _LONGEST:
            raise ValueError(f"memory is {shown(memory)}, which holds any batch: give the memory of a GPU, as 80 * GB")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if breakdown(middle).fits(memory) else (low, middle)
    return low


def _check_options(strategy: str, prefetch: bool, reduced_bytes: int | None, bucket_elements: int | None) -> None:
    """The options that only some strategies have."""
    check_yes_or_no("prefetch", prefetch)
    if reduced_bytes is not None:
        check_one_of("reduced_bytes", reduced_bytes, (2, 4))
    if bucket_elements is not None:
        check_whole("bucket_elements", bucket_elements, "a number of elements")
    for given, name, value, others, what in (
        (not prefetch, "prefetch", prefetch, GATHERING, "gathers no weights"),
        (reduced_bytes is not None, "reduced_bytes", reduced_bytes, GATHERING, "has no such buffer"),
        (bucket_elements is not None, "bucket_elements", bucket_elements, ("zero1", "zero2"), "has no such buckets"),
    ):
        if given and strategy not in others:
            raise ValueError(f"{name} is {value}, but {strategy} {what}: leave it out, or choose {others[0]!r}")


def batch_bytes(tokens: int) -> int:
    """Token ids and labels, 8 bytes each, and the loss: a number and the number of tokens it was averaged over."""
    return 2 * 8 * tokens + 2 * 4
