"""What the optimizer holds on one rank in a framework: padded shards, step counters, and temporaries of its step."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from utils.theory.allocations import fsdp2_shard, padded_shard, step_counters
from utils.theory.architecture import Architecture
from utils.theory.memory import SHARDED, ModelStates
from utils.theory.recipes import Recipe

OPTIMIZER_STEPS: tuple[str, ...] = ("foreach", "for-loop", "fused")


def padded_states(model: Architecture, ranks: int, recipe: Recipe) -> ModelStates:
    """Model states of the rank with most under FSDP2, tensors cut and padded one by one."""
    elements = _padded(model, ranks)
    return ModelStates(*(each * elements for each in (recipe.weights, recipe.gradients, recipe.master_weights,
                                                      recipe.optimizer)))  # fmt: skip


def all_step_counters(model: Architecture) -> int:
    """Bytes of Adam's step counters in PyTorch: one for each tensor, however it is sharded."""
    return step_counters(model.root_tensors) + model.layers * step_counters(model.layer_tensors)


def temporaries(model: Architecture, strategy: str, ranks: int, recipe: Recipe, optimizer_step: str) -> float:
    """Bytes that the optimizer's step needs for a while; as for `breakdown.training_memory`.

    Source: PyTorch 2.13, torch/optim/adam.py. _multi_tensor_adam holds the square roots of all second moments;
    _single_tensor_adam, tensor by tensor, the root and the quotient made of it, and still the quotient of the tensor
    before. Traced with MemTracker: 20 bytes per parameter at the step where 16 are states, with foreach.
    """
    if optimizer_step == "fused":
        return 0
    cut = ranks if "optimizer" in SHARDED[strategy] else 1
    if strategy.startswith("zero"):  # DeepSpeed joins all tensors into a flat one
        return recipe.foreach * model.parameters / cut * (1 if optimizer_step == "foreach" else 2)
    if optimizer_step == "foreach":
        return recipe.foreach * _padded(model, cut)
    # The layers are alike, so two of them have every pair of neighbours.
    few = replace(model, layers=min(2, model.layers)).tensors
    sizes = [0, *(padded_shard(tensor.shape, cut) for tensor in few)]
    return recipe.foreach * max(before + 2 * size for before, size in pairwise(sizes))


def _padded(model: Architecture, ranks: int) -> int:
    """Elements on the rank with most."""
    return fsdp2_shard(model.root_tensors, ranks) + model.layers * fsdp2_shard(model.layer_tensors, ranks)
