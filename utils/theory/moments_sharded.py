"""The moments of a step with sharded weights: zero3, fsdp and hsdp.

In FSDP2 the backward pass works on block j, from the last to the first:

- blocks 0 to j still have their activations, the blocks behind j their gradient shards;
- FSDP holds root and block j gathered, block j-1 being gathered, block j+1 being reduced;
- inside the block memory is largest behind the MLP's last matrix, at the norm before the MLP, in the attention, or at
  the block's end, which is the norm before the attention.

All of it changes linearly from block to block, so the largest is found among the first two and the last two. Units of
several layers, other numbers of units ahead, and units that are kept after forward follow by the same rules (`Units`).

Against the second step's peak as FSDPMemTracker traces it (fp32 shards gathered in bf16; 1, 2, 3, 6 and 8 ranks; one to
six blocks; tied or not; with recomputation and without; `tests/theory/test_allocations.py`): Llama's blocks to the
byte, GPT's up to 0.03% more, since LayerNorm's statistics are fp32 here as on GPUs and bf16 in a trace on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from utils.theory.allocations import UnitBuffers, fsdp2_shard, unit_buffers
from utils.theory.moments import Moment, Step


@dataclass(frozen=True)
class Units:
    """How `fully_shard` was applied, and its switches.

    layers: in a unit, counted from the first layer; the last unit may have fewer. ahead: units gathered before their
    turn, in forward and in backward. reshard: whether a unit is freed after its forward.
    """

    layers: int = 1
    ahead: int = 1
    reshard: bool = True

    def span(self, layer: int, of: int) -> tuple[int, int]:
        """(first layer, last layer + 1) of the unit that has `layer`. of: how many layers there are."""
        first = layer - layer % self.layers
        return first, min(first + self.layers, of)

    def behind(self, end: int, of: int, ahead: int) -> int:
        """Layers of so many units behind the one that ends before layer `end`."""
        return min(of, end + max(0, ahead) * self.layers) - end

    def before(self, first: int, ahead: int) -> int:
        """Layers of so many units before the one that begins with layer `first`, or before the root's end."""
        number = -(-first // self.layers)  # units before that one
        return first - max(0, number - max(0, ahead)) * self.layers


def moments_of_sharded_weights(
    step: Step, ranks: int, units: Units | None = None, every_block: bool = False
) -> tuple[Moment, ...]:
    """Shards, and of the whole what is in use. zero3 is reckoned as fsdp.

    ranks: that share one copy of the model. One alone gathers nothing: it casts its weights where they are used.
    units: left out, each layer is one, with one gathered ahead in backward if `step.prefetch`. every_block: all blocks
    in forward and in backward, in order, and not only those that can have the peak.
    """
    units = Units(ahead=int(step.prefetch)) if units is None else units
    model, states, kept = step.model, step.states, step.activations
    layers, embedding = kept.layers, step.element * model.embedding_parameters
    root, block = (
        unit_buffers(t, ranks, step.element, step.reduced) for t in (model.root_tensors, model.layer_tensors)
    )
    gathering = block.all_gather if ranks > 1 else 0
    root_gradients = step.element * (model.parameters - layers * model.parameters_per_layer)
    always = {"weights": states.weights, "master_weights": states.master_weights, "optimizer": states.optimizer}
    activations = layers * kept.per_layer + step.batch
    between = root.gathered + (0 if units.reshard else layers * block.gathered)
    some = {0, min(1, layers - 1), max(0, layers - 2), layers - 1}
    some_forward = range(layers) if every_block else (layers - 1,)
    backward = reversed(range(layers)) if every_block else sorted(some, reverse=True)
    first_unit, last_units = units.span(0, layers)[1], units.before(layers, units.ahead) if units.reshard else 0
    shard = step.recipe.gradients * fsdp2_shard(model.layer_tensors, ranks)  # of a block's gradients
    reduced = layers * shard
    places = _places(step)
    forward = [m for j in some_forward for m in _forward(step, j, always, units, root, block, gathering)]
    if not every_block:  # with full recomputation it is never the largest
        forward = [] if step.full_recomputation else [replace(forward[-1], name="forward, last block")]
    return (
        *forward,
        Moment("loss", **always, gathered=between, activations=activations + kept.head,
               logits=kept.logits + kept.at_loss),
        Moment("backward, last norm", **always, gathered=between, activations=activations,
               working=step.head_gradients + step.in_last_norm(), buffers=last_units * gathering),
        *(m for j in backward for m in _backward(step, j, always, units, root, block, gathering, shard, places)),
        # A tied matrix has its gradient as the output's, the one as the embedding's, and the sum of the two.
        Moment("backward, embedding", **always, gathered=root.gathered, gradients=reduced, activations=step.batch,
               working=root_gradients + (2 * embedding if model.tied_embeddings else step.residual),
               buffers=first_unit * block.reduce_scatter),
        # The gathered root is freed before its gradients are copied for the reduction.
        Moment("backward, root", **always, gradients=reduced, activations=step.batch, working=root_gradients,
               buffers=root.reduce_scatter),
        # The gradient that came last, the embedding's, is there until the backward pass has returned.
        Moment("backward, root reduced", **always, gradients=reduced, activations=step.batch, working=embedding,
               buffers=root.reduce_scatter * (1 + 1 / ranks)),
        Moment("optimizer step", **always, gradients=states.gradients, temporaries=step.temporaries,
               activations=step.batch),
    )  # fmt: skip


def _forward(
    step: Step,
    j: int,
    always: dict[str, float],
    units: Units,
    root: UnitBuffers,
    block: UnitBuffers,
    gathering: float,
) -> list[Moment]:
    """The forward pass of block j, and before it the moment at which its unit's parameters are cut out of the buffer
    that they arrived in. That buffer stays until the next unit's are: then there are two.
    """
    kept, full = step.activations, step.full_recomputation
    first, end = units.span(j, kept.layers)

    def moment(place: str, blocks: int, working: float, arriving: int, left_over: float = 0) -> Moment:
        return Moment(
            place,
            **always,
            gathered=root.gathered + (end - first if units.reshard else end) * block.gathered,
            activations=blocks * kept.per_layer + step.batch,
            working=working,
            buffers=arriving * gathering + left_over,
        )

    own = end - first
    working = step.unkept_tensors if full else step.forward_tensors
    computing = moment(f"forward, block {j}", j + 1, working, own + units.behind(end, kept.layers, units.ahead))
    if j > first:
        return [computing]
    arrived = own + units.before(first, 1) + units.behind(end, kept.layers, units.ahead - 1)
    left_over = root.all_gather if gathering and not j else 0  # the root was the one before
    return [moment(f"forward, block {j}, gathered", j, step.residual, arrived, left_over), computing]


def _places(step: Step) -> tuple[tuple[str, float, float], ...]:
    """Of the backward pass of a block: (where, activations of the block that are left, gradients in work)."""
    left, working = step.in_mlp()
    held, attending = step.in_attention()
    return (
        ("MLP", left, step.down_gradient + working),
        ("norm", step.below_mlp, step.mlp_gradients + step.in_norm(first=False)),
        ("attention", held, step.mlp_gradients + step.output_gradient + attending),
        ("end", 0, step.element * step.model.parameters_per_layer + step.in_norm(first=True)),
    )


def _backward(
    step: Step,
    j: int,
    always: dict[str, float],
    units: Units,
    root: UnitBuffers,
    block: UnitBuffers,
    gathering: float,
    shard: float,
    places: tuple[tuple[str, float, float], ...],
) -> list[Moment]:
    """The backward pass of block j. What full recomputation brought back is working memory, else it is activations."""
    model, kept, full = step.model, step.activations, step.full_recomputation
    first, end = units.span(j, kept.layers)
    ahead = units.before(first, units.ahead) if units.reshard else 0
    reducing = units.span(end, kept.layers)[1] - end if end < kept.layers else 0  # layers of the unit behind
    inputs = (j + full) * kept.per_layer + step.batch  # of the blocks before, and of this one if it is brought back
    waiting = (end - 1 - j) * step.element * model.parameters_per_layer  # until the unit's gradients are all there

    def moment(place: str, left: float, working: float, arriving: int = ahead) -> Moment:
        return Moment(
            f"backward, block {j}, {place}",
            **always,
            gathered=root.gathered + (end - first if units.reshard else end) * block.gathered,
            gradients=(kept.layers - end) * shard,
            activations=inputs + (0 if full else left),
            working=step.head_gradients + waiting + working + (left if full else 0),
            buffers=arriving * gathering + reducing * block.reduce_scatter,
        )

    moments = [moment(*place) for place in places]
    if not units.reshard or j < end - 1 or (first and units.ahead == 1):
        return moments
    # The unit's own buffer is still there when its parameters are cut out of it; the next one arrives then, and counts
    # for more. Not where nothing is gathered ahead, nor where several units are and fewer than that are left.
    arrived = end - first + units.before(first, units.ahead - 1)
    return [moment("gathered", 0 if full else kept.per_layer, step.residual, arrived), *moments]
