"""Bytes of model states that each GPU holds: weights, gradients, master weights and the optimizer's moments.

Sources of the laws. ZeRO: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
SC20, arXiv:1910.02054v3, sections 3.1 and 5. FSDP and its hybrid: Zhao et al., "PyTorch FSDP", VLDB 2023,
arXiv:2304.11277, section 3.2. How many bytes a parameter costs is a convention: `PRECISION_RECIPES` names the common
ones. Activations, temporary buffers and fragmentation come on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Rational

from utils.theory.arguments import check_amount, check_choice, check_divisor, check_ranks, check_share, check_yes_or_no
from utils.theory.recipes import PRECISION_RECIPES, Recipe
from utils.theory.units import GB, plain, shown

#: By strategy, which states are shared out among the ranks; the others are whole on every rank.
SHARDED: dict[str, tuple[str, ...]] = {
    "ddp": (),
    "zero1": ("master_weights", "optimizer"),
    "zero2": ("gradients", "master_weights", "optimizer"),
    "zero3": ("weights", "gradients", "master_weights", "optimizer"),
    "fsdp": ("weights", "gradients", "master_weights", "optimizer"),
    "hsdp": ("weights", "gradients", "master_weights", "optimizer"),
}
STRATEGIES: tuple[str, ...] = tuple(SHARDED)
#: The strategies that shard the weights, and gather them to compute.
GATHERING: tuple[str, ...] = tuple(name for name, states in SHARDED.items() if "weights" in states)


@dataclass(frozen=True, slots=True)
class ModelStates:
    """Bytes on each GPU.

    gradients: all copies of them that the recipe counts. optimizer: the moments, without the master weights.
    buckets: DDP's own copy of the gradients; 0 with `gradient_as_bucket_view`, where the gradients lie in the buckets.
    """

    weights: float
    gradients: float
    master_weights: float
    optimizer: float
    buckets: float = 0.0

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.master_weights + self.optimizer + self.buckets

    def __str__(self) -> str:
        rows = [(name, f"{size / GB:,.3f} GB") for name, size in self._rows()]
        return "\n".join(f"{name:<16}{size:>16}" for name, size in rows)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row">{name}</th><td>{size / GB:,.3f} GB</td></tr>' for name, size in self._rows()
        )
        return f"<table><caption>model states on each GPU</caption>{rows}</table>"

    def _rows(self) -> list[tuple[str, float]]:
        parts = [(field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self)]
        return [*((name, size) for name, size in parts if size), ("in all", self.total)]


def model_states(
    parameters: float,
    world_size: int,
    strategy: str,
    shard_size: int | None = None,
    recipe: str | Recipe = "zero-paper",
    gradient_as_bucket_view: bool = True,
) -> ModelStates:
    """Bytes of model states on each GPU, with Psi parameters on N GPUs.

    Under the ZeRO paper's recipe: ddp 16 Psi; zero1 4 Psi + 12 Psi / N; zero2 2 Psi + 14 Psi / N; zero3 and fsdp
    16 Psi / N; hsdp 16 Psi / G in shard groups of G GPUs. zero3 and fsdp hold the same share of whatever recipe;
    they differ in the recipe that goes with them (DeepSpeed's zero3 keeps 16-bit weights beside fp32 master weights,
    PyTorch's fsdp fp32 shards and no others: "fsdp2") and in what they gather meanwhile (`theory.allocations`).

    Args:
        parameters: Psi, in all, above 0.
        world_size: N, the number of data-parallel GPUs, at least 1.
        strategy: one of `STRATEGIES`.
        shard_size: G, for hsdp alone: a divisor of N.
        recipe: a name in `PRECISION_RECIPES`, or a `Recipe`.
        gradient_as_bucket_view: ddp's option alone. False, its default in PyTorch, costs one more copy of the
            gradients in the precision in which they are communicated.

    Sizes are exact shares of the whole; a framework that pads its shards holds a little more.
    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    check_amount("parameters", parameters, "a number of parameters", "such as 7.5e9")
    cost = _bytes_per_parameter(world_size, strategy, shard_size, recipe, gradient_as_bucket_view)
    psi = plain(parameters)
    weights, gradients, copies, master_weights, optimizer, buckets = [each * psi / ranks for each, ranks in cost]
    return ModelStates(weights, gradients + copies, master_weights, optimizer, buckets)


def max_parameters(
    memory_bytes: float,
    world_size: int,
    strategy: str,
    recipe: str | Recipe = "zero-paper",
    reserve: float = 0.0,
    shard_size: int | None = None,
    gradient_as_bucket_view: bool = True,
) -> int:
    """The largest model whose states fit a GPU: floor((1 - reserve) · memory / bytes per parameter).

    memory_bytes: of one GPU, at least 0; 80 * GB and 80 * GiB are 7.4% apart.
    reserve: the share of the memory kept free for activations, buffers and fragmentation, from 0 to below 1.
    The other arguments, and errors, are those of `model_states`.
    """
    check_amount("memory_bytes", memory_bytes, "a GPU's memory in bytes", "such as 80 * GB", least=0)
    check_share("reserve", reserve)
    cost = _bytes_per_parameter(world_size, strategy, shard_size, recipe, gradient_as_bucket_view)
    memory_bytes, reserve = plain(memory_bytes), reserve if isinstance(reserve, Rational) else float(reserve)
    each = sum(Fraction(per_parameter) / ranks for per_parameter, ranks in cost)
    if not each:
        raise ValueError("the recipe costs 0 bytes per parameter, so that any model fits: give one that costs more")
    # 0.1 is meant as one tenth, which a float is not quite; it would cost one parameter of a million million.
    free = (1 - Fraction(reserve).limit_denominator(10**9)) * Fraction(memory_bytes)
    return math.floor(free / each)


def _bytes_per_parameter(
    world_size: int, strategy: str, shard_size: int | None, recipe: str | Recipe, gradient_as_bucket_view: bool
) -> tuple[tuple[float, int], ...]:
    """(bytes per parameter, ranks that share them out), after all arguments were checked, of each: weights, gradients,
    the optimizer's copy of gradients, master weights, moments, DDP's buckets."""
    ranks = sharing_ranks(world_size, strategy, shard_size)
    used = named_recipe(recipe)
    check_bucket_view(gradient_as_bucket_view, strategy)
    sharded = SHARDED[strategy]
    copied = used.communicated_gradients if strategy == "ddp" and not gradient_as_bucket_view else 0
    of_optimizer = ranks if "optimizer" in sharded else 1
    return (
        (used.weights, ranks if "weights" in sharded else 1),
        (used.gradients - used.gradient_copy, ranks if "gradients" in sharded else 1),
        (used.gradient_copy, of_optimizer),
        (used.master_weights, of_optimizer),
        (used.optimizer, of_optimizer),
        (copied, 1),
    )


def sharing_ranks(world_size: int, strategy: str, shard_size: int | None) -> int:
    """Among how many ranks the sharded states are shared out."""
    check_ranks("world_size", world_size, "a number of GPUs")
    check_choice("strategy", strategy, SHARDED)
    if strategy == "hsdp":
        check_divisor("shard_size", shard_size, world_size, "world_size", "hsdp needs the size of its shard groups")
        return int(shard_size)
    if shard_size is not None:
        raise ValueError(
            f"shard_size is {shown(shard_size)}, but {strategy} has no shard groups: leave it out, or choose 'hsdp'"
        )
    return int(world_size)


def check_bucket_view(gradient_as_bucket_view: bool, strategy: str) -> None:
    """Raise ValueError unless it is True or False, and True where there are no such buckets."""
    check_yes_or_no("gradient_as_bucket_view", gradient_as_bucket_view)
    if gradient_as_bucket_view is False and strategy != "ddp":
        raise ValueError(
            f"gradient_as_bucket_view is False, but {strategy} has none of DDP's buckets: leave it out, or choose 'ddp'"
        )


def named_recipe(recipe: str | Recipe) -> Recipe:
    """The recipe itself, or that of `PRECISION_RECIPES` with that name."""
    if isinstance(recipe, Recipe):
        return recipe
    check_choice("recipe", recipe, PRECISION_RECIPES)
    return PRECISION_RECIPES[recipe]
