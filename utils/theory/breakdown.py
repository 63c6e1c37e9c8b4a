"""The memory of one GPU in training, part by part: a breakdown that adds up, and what fits.

Not in it: the allocator's fragmentation and rounding, the CUDA context, workspaces of cuBLAS and NCCL, temporaries of
the optimizer's step. They come on top; a reserve of a tenth is a usual guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from utils.theory.activations import activation_bytes
from utils.theory.allocations import DEEPSPEED_BUCKET_ELEMENTS, STEP_COUNTER_BYTES, fsdp2_shard
from utils.theory.architecture import Architecture
from utils.theory.arguments import check_amount, check_whole, check_yes_or_no, is_whole
from utils.theory.kept import IMPLEMENTATIONS
from utils.theory.memory import ModelStates, model_states, named_recipe, sharing_ranks
from utils.theory.moments import Moment, Step, moments_of_sharded_weights, moments_of_whole_weights
from utils.theory.recipes import Recipe
from utils.theory.units import GB, plain, shown

#: Field of `Moment` -> what it is called in tables and pictures.
PART_NAMES: dict[str, str] = {
    "weights": "weights",
    "gathered": "gathered weights",
    "gradients": "gradients",
    "master_weights": "master weights",
    "optimizer": "moments",
    "activations": "activations",
    "logits": "logits",
    "working": "working memory",
    "buffers": "communication buffers",
}
_GATHERING = ("zero3", "fsdp", "hsdp")
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
        """Model states with all gradients, at the optimizer's step: what lives whatever the batch."""
        last = self.moments[-1]
        return last.total - last.activations

    def fits(self, memory: float, reserve: float = 0.0) -> bool:
        """Whether the peak fits `memory` bytes of a GPU, of which the share `reserve`, 0 to below 1, is kept free."""
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
        check_amount("reserve", reserve, "a share of the memory", "such as 0.1", least=0)
        if reserve >= 1:
            raise ValueError(f"reserve is {reserve!r}; it is a share of the memory: give a number from 0 to below 1")
        return self.total <= (1 - reserve) * plain(memory)

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
    element_bytes: int = 2,
    logit_bytes: int = 4,
    reduced_bytes: int = 4,
    prefetch: bool = True,
    gradient_as_bucket_view: bool = True,
    bucket_elements: int = DEEPSPEED_BUCKET_ELEMENTS,
) -> Breakdown:
    """The memory of one GPU in a training step, with each layer wrapped as one unit where weights are sharded.

    Args:
        model, sequence, micro_batch, recomputation, flash_attention, implementation, element_bytes, logit_bytes: as for
            `activations.activation_bytes`. element_bytes is also the size of a gathered weight.
        world_size, strategy, shard_size, gradient_as_bucket_view: as for `memory.model_states`.
        recipe: as there; left out, "fsdp2" for fsdp and hsdp, "zero-paper" for the others.
        reduced_bytes: of a gradient while it is reduced, under sharded weights.
        prefetch: whether the next unit is gathered while one computes its backward pass, as FSDP2 does by default.
        bucket_elements: DeepSpeed's reduce_bucket_size, for zero1 and zero2.

    fsdp and hsdp: the rank with most, shards padded tensor by tensor, step counters included.
    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    kept = activation_bytes(
        model, sequence, micro_batch, recomputation, flash_attention, implementation, element_bytes, logit_bytes
    )
    ranks = sharing_ranks(world_size, strategy, shard_size)
    check_yes_or_no("prefetch", prefetch)
    check_whole("bucket_elements", bucket_elements, "a number of elements")
    if not is_whole(reduced_bytes) or reduced_bytes not in (2, 4):
        raise ValueError(f"reduced_bytes is {shown(reduced_bytes)}; give 2 or 4")
    if recipe is None:
        recipe = "fsdp2" if strategy in ("fsdp", "hsdp") else "zero-paper"
    used = named_recipe(recipe)
    states = model_states(model.parameters, world_size, strategy, shard_size, used, gradient_as_bucket_view)
    if strategy in ("fsdp", "hsdp"):
        states = _padded(model, ranks, used)
    tokens = int(sequence) * int(micro_batch)
    step = Step(
        model, IMPLEMENTATIONS[implementation], tokens, kept, states, used, int(element_bytes), int(reduced_bytes),
        prefetch, _batch_bytes(tokens), int(bucket_elements),
    )  # fmt: skip
    if strategy in _GATHERING:
        moments = moments_of_sharded_weights(step, ranks)
    else:
        moments = moments_of_whole_weights(step, strategy)
    recomputed = "" if recomputation == "none" else f", {recomputation} recomputation"
    title = (
        f"{strategy} on {int(world_size):,} GPUs, {model.parameters:,} parameters, {int(micro_batch):,} x "
        f"{int(sequence):,} tokens{recomputed}"
    )
    return Breakdown(title, moments)


def max_micro_batch(
    model: Architecture, world_size: int, strategy: str, sequence: int, memory: float, **more: Any
) -> int:
    """The most sequences of that length at once on one GPU of `memory` bytes; 0 if not even one fits.

    The other arguments are those of `training_memory`.
    """
    return _largest(lambda n: training_memory(model, world_size, strategy, sequence, n, **more), memory)


def max_sequence(model: Architecture, world_size: int, strategy: str, memory: float, **more: Any) -> int:
    """The longest sequence, alone in its micro-batch unless `micro_batch` says otherwise; 0 if not even one token fits.

    The other arguments are those of `training_memory`.
    """
    return _largest(lambda n: training_memory(model, world_size, strategy, n, **more), memory)


def _largest(breakdown: Any, memory: float) -> int:
    """The largest whole number whose breakdown fits: doubled until it does not, then halved in between."""
    low, high = 0, 1
    while breakdown(high).fits(memory):
        low, high = high, 2 * high
        if high > _LONGEST:
            raise ValueError(f"memory is {shown(memory)}, which holds any batch: give the memory of a GPU, as 80 * GB")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if breakdown(middle).fits(memory) else (low, middle)
    return low


def _padded(model: Architecture, ranks: int, recipe: Recipe) -> ModelStates:
    """Model states of the rank with most, tensors cut and padded one by one, with Adam's step counters."""
    elements = fsdp2_shard(model.root_tensors, ranks) + model.layers * fsdp2_shard(model.layer_tensors, ranks)
    tensors = len(model.root_tensors) + model.layers * len(model.layer_tensors)
    counters = STEP_COUNTER_BYTES * tensors if recipe.optimizer else 0
    return ModelStates(
        recipe.weights * elements,
        recipe.gradients * elements,
        recipe.master_weights * elements,
        recipe.optimizer * elements + counters,
    )


def _batch_bytes(tokens: int) -> int:
    """Token ids and labels, 8 bytes each, and the loss: a number and the number of tokens it was averaged over."""
    return 2 * 8 * tokens + 2 * 4
