"""A step of FSDP for a model, a cluster and a batch: what lies in memory at each moment, and when the network is busy.

    step = fsdp_step(PRESETS["Llama-2-70B"], 64, Link(50 * GB), 0.4 * PEAK_FLOPS["H100"], sequence=2048)
    step.peak.total, step.fits(80 * GB), step.time.exposed

Memory is that of `breakdown.training_memory`, block after block, with units of any number of layers. Time is that of
`step_time.simulate_step`, with a root that is gathered once. A matrix of P numbers takes 2 P operations a token
forward, the attention scores 4 h s (Chowdhery et al., PaLM, arXiv:2204.02311, appendix B), backward twice that, and a
layer that is recomputed its forward once more. Norms, the loss and the optimizer's own step take no time here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from utils.theory.activations import activation_bytes
from utils.theory.architecture import Architecture, Tensor, check_model
from utils.theory.arguments import check_amount, check_choice, check_ranks, check_share, check_whole, check_yes_or_no
from utils.theory.breakdown import batch_bytes
from utils.theory.ddp_step import LOOKED_UP
from utils.theory.events import Timeline, Transfer, simulate
from utils.theory.kept import IMPLEMENTATIONS
from utils.theory.moments import Moment, Step
from utils.theory.moments_sharded import Units, moments_of_sharded_weights
from utils.theory.optimizer_memory import all_step_counters, padded_states, temporaries
from utils.theory.recipes import PRECISION_RECIPES, Recipe
from utils.theory.sharing import Link
from utils.theory.step_tasks import Job, tasks_of
from utils.theory.step_time import Layer
from utils.theory.units import plain, shown


@dataclass(frozen=True)
class Precision:
    """Of shards, gradients and moments: the recipe; whole copies and activations: what it computes with.

    reduced: bytes of a gradient while it is reduced.
    """

    recipe: Recipe
    reduced: int

    @property
    def copies(self) -> int:
        """Bytes of a gathered parameter."""
        return int(self.recipe.computed or 4)


_BF16 = Recipe(
    "Adam, everything in bf16", 2, 2, 0, 4, 2, "PyTorch: gradients and moments have the parameters' type", foreach=2
)
#: As FSDP2's MixedPrecisionPolicy names them: shards keep their type, copies have `param_dtype`.
PRECISIONS: dict[str, Precision] = {
    "fp32": Precision(PRECISION_RECIPES["fp32"], 4),
    "fp32 shards, bf16 copies": Precision(PRECISION_RECIPES["fsdp2"], 4),
    "the same, reduced in bf16": Precision(PRECISION_RECIPES["fsdp2"], 2),
    "bf16": Precision(_BF16, 2),
}


@dataclass(frozen=True)
class Time:
    """Seconds of a simulated step: of compute in it, of its collectives, each alone; and what happens when."""

    compute: float
    communication: float
    timeline: Timeline

    @property
    def seconds(self) -> float:
        return self.timeline.seconds

    @cached_property
    def exposed(self) -> float:
        """In which the rank only waited for communication."""
        return self.timeline.exposed


@dataclass(frozen=True)
class FsdpStep:
    """A step on one rank.

    moments: bytes, in the order of the step; the last is the optimizer's. time: seconds, simulated. units: beside the
    root. tokens: of the rank. root_bytes, unit_bytes: of the whole copy of the root, and of the first unit.
    """

    moments: tuple[Moment, ...]
    time: Time
    units: int
    tokens: int
    root_bytes: int
    unit_bytes: int

    @cached_property
    def peak(self) -> Moment:
        """The first moment with the most bytes."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def at_rest(self) -> float:
        """Bytes of shards, all their gradients and the optimizer's state."""
        last = self.moments[-1]
        return last.weights + last.gradients + last.master_weights + last.optimizer

    @property
    def gathers(self) -> int:
        """All-gathers in the step."""
        return sum(event.name.startswith("all_gather") for event in self.time.timeline.events)

    @property
    def hidden(self) -> float:
        """The part of the communication behind which something computed, from 0 to 1; 1 without communication."""
        alone = self.time.communication
        return max(0.0, 1 - self.time.exposed / alone) if alone else 1.0

    @property
    def tokens_per_second(self) -> float:
        """Of one rank."""
        return self.tokens / self.time.seconds

    def fits(self, memory: float, reserve: float = 0.0) -> bool:
        """Whether the peak fits `memory` bytes of a GPU, of which the share `reserve`, 0 to below 1, is kept free."""
        check_amount("memory", memory, "a GPU's memory in bytes", "such as 80 * GB")
        check_share("reserve", reserve)
        return self.peak.total <= (1 - reserve) * plain(memory)


def fsdp_step(
    model: Architecture,
    world_size: int,
    link: Link,
    flops: float,
    sequence: int,
    micro_batch: int = 1,
    *,
    layers_in_unit: int = 1,
    ahead: int = 1,
    reshard: bool = True,
    precision: str = "fp32 shards, bf16 copies",
    recompute: bool = False,
) -> FsdpStep:
    """One step of `model` on `world_size` ranks joined by `link`, one micro-batch, Adam with foreach.

    Args:
        flops: operations per second that a rank really does: its peak times its utilization.
        sequence, micro_batch: tokens in a sequence, and sequences at once, on each rank.
        layers_in_unit, ahead, reshard: see `moments_sharded.Units`; the last unit may have fewer layers.
        precision: a name in `PRECISIONS`. recompute: each layer keeps its input alone, and is computed again.

    Raises ValueError, in one sentence, for a value out of range.
    """
    check_model(model)
    check_ranks("world_size", world_size, "a number of GPUs")
    check_amount("flops", flops, "operations per second of a rank", "such as 0.4 * PEAK_FLOPS['H100']")
    check_whole("layers_in_unit", layers_in_unit, "how many layers are gathered at once")
    check_whole("ahead", ahead, "how many units are gathered before their turn", least=0)
    check_yes_or_no("reshard", reshard)
    check_yes_or_no("recompute", recompute)
    check_choice("precision", precision, PRECISIONS)
    if not isinstance(link, Link):
        raise ValueError(f"link is {shown(link)}; give a Link, such as Link(50 * GB, 5e-6)")
    units, chosen = Units(int(layers_in_unit), int(ahead), reshard), PRECISIONS[precision]
    moments = memory_over_step(model, int(world_size), sequence, micro_batch, units, chosen, recompute)
    counts = [end - first for first, end in (units.span(j, model.layers) for j in range(0, model.layers, units.layers))]
    root = model.parameters - model.layers * model.parameters_per_layer
    tokens = int(sequence) * int(micro_batch)
    layers = _layers(model, counts, root, tokens / float(flops), int(sequence), chosen, recompute)
    time = _simulated(layers, Job(layers, int(world_size), prefetch=units.ahead, reshard=reshard), link)
    unit = chosen.copies * counts[0] * model.parameters_per_layer
    return FsdpStep(moments, time, len(counts), tokens, chosen.copies * root, unit)


def memory_over_step(
    model: Architecture,
    ranks: int,
    sequence: int,
    micro_batch: int,
    units: Units,
    precision: Precision,
    recompute: bool = False,
    optimizer_step: str = "foreach",
) -> tuple[Moment, ...]:
    """Bytes on the rank with most at every block of the forward and backward pass; see `moments_sharded`.

    ranks: that share one copy of the model. optimizer_step: as for `breakdown.training_memory`.
    """
    recipe, element = precision.recipe, precision.copies
    how = "full" if recompute else "none"
    kept = activation_bytes(model, sequence, micro_batch, how, implementation="torch", element_bytes=element)
    states = padded_states(model, ranks, recipe)
    step = Step(
        model, IMPLEMENTATIONS["torch"], sequence * micro_batch, kept,
        replace(states, optimizer=states.optimizer + all_step_counters(model)), recipe, element, precision.reduced,
        prefetch=bool(units.ahead), batch=batch_bytes(sequence * micro_batch), bucket_elements=0,
        temporaries=temporaries(model, "fsdp", ranks, recipe, optimizer_step),
    )  # fmt: skip
    return moments_of_sharded_weights(step, ranks, units, every_block=True)


def _layers(
    model: Architecture,
    counts: Sequence[int],
    root: int,
    per_operation: float,
    sequence: int,
    precision: Precision,
    recompute: bool,
) -> list[Layer]:
    """The root's parameters, the units, and the root's computation. per_operation: seconds of one for each token.

    counts: layers in each unit. root: parameters that no unit has.
    """
    head = _matrices(model.root_tensors) + (model.embedding_parameters if model.tied_embeddings else 0)
    each = 2 * _matrices(model.layer_tensors) + 4 * model.heads * model.head_dim * sequence
    units = []
    for count in counts:
        forward, parameters = count * each * per_operation, count * model.parameters_per_layer
        backward = (3 if recompute else 2) * forward
        units.append(Layer(forward, backward, precision.reduced * parameters, precision.copies * parameters))
    return [Layer(0, 0, precision.reduced * root, precision.copies * root), *units, Layer(2 * head * per_operation)]


def _matrices(tensors: Sequence[Tensor]) -> int:
    """Parameters that every token is multiplied with."""
    return sum(t.parameters for t in tensors if len(t.shape) > 1 and not t.name.startswith(LOOKED_UP))


def _simulated(layers: Sequence[Layer], job: Job, link: Link) -> Time:
    """As `simulate_step`, but the root is not gathered a second time, and the layer without parameters not at all."""
    tasks = tasks_of("fsdp", job)
    gone = {
        task.name: task.after
        for task in tasks
        if isinstance(task, Transfer) and (not task.bytes or task.name == "all_gather for backward 0")
    }

    def still_there(names: tuple[str, ...]) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            found += still_there(gone[name]) if name in gone else (name,)
        return tuple(dict.fromkeys(found))

    tasks = [
        task if gone.keys().isdisjoint(task.after) else replace(task, after=still_there(task.after))
        for task in tasks
        if task.name not in gone
    ]
    moving = [task for task in tasks if isinstance(task, Transfer)]
    compute = math.fsum(task.seconds for task in tasks if not isinstance(task, Transfer))
    communication = math.fsum(link.alone(task.bytes, task.steps) for task in moving)
    return Time(compute, communication, simulate(tasks, {"link": link}))
