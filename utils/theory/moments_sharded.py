"""The moments of a step with sharded weights: zero3, fsdp and hsdp.

In FSDP2 the backward pass works on block j, from the last to the first:

- blocks 0 to j still have their activations, the blocks behind j their gradient shards;
- FSDP holds root and block j gathered, block j-1 being gathered, block j+1 being reduced;
- inside the block memory is largest behind the MLP's last matrix, at the norm before the MLP, in the attention, or at
  the block's end, which is the norm before the attention.

All of it changes linearly from block to block, so the largest is found among the first two and the last two.

Against the second step's peak as FSDPMemTracker traces it (fp32 shards gathered in bf16; 1, 2, 3, 6 and 8 ranks; one to
six blocks; tied or not; with recomputation and without; `tests/theory/test_allocations.py`): Llama's blocks to the
byte, GPT's up to 0.03% more, since LayerNorm's statistics are fp32 here as on GPUs and bf16 in a trace on the CPU.
"""

from __future__ import annotations

from utils.theory.allocations import UnitBuffers, fsdp2_shard, unit_buffers
from utils.theory.moments import Moment, Step


def moments_of_sharded_weights(step: Step, ranks: int) -> tuple[Moment, ...]:
    """Shards, and of the whole what is in use. zero3 is reckoned as fsdp.

    ranks: that share one copy of the model. One alone gathers nothing: it casts its weights where they are used.
    """
    model, states, kept = step.model, step.states, step.activations
    layers, embedding = kept.layers, step.element * model.embedding_parameters
    root, block = (
        unit_buffers(t, ranks, step.element, step.reduced) for t in (model.root_tensors, model.layer_tensors)
    )
    gathering = block.all_gather if ranks > 1 else 0
    prefetching = gathering if step.prefetch else 0
    root_gradients = step.element * (model.parameters - layers * model.parameters_per_layer)
    always = {"weights": states.weights, "master_weights": states.master_weights, "optimizer": states.optimizer}
    activations = layers * kept.per_layer + step.batch
    last_two_and_first_two = sorted({0, min(1, layers - 1), max(0, layers - 2), layers - 1}, reverse=True)
    reduced = layers * _gradient_shard(step, ranks)
    forward = Moment("forward, last block", **always, gathered=root.gathered + block.gathered, activations=activations,
                     working=step.forward_tensors, buffers=gathering)  # fmt: skip
    return (
        *(() if step.full_recomputation else (forward,)),
        Moment("loss", **always, gathered=root.gathered, activations=activations + kept.head,
               logits=kept.logits + kept.at_loss),
        Moment("backward, last norm", **always, gathered=root.gathered, activations=activations,
               working=step.head_gradients + step.in_last_norm(), buffers=prefetching),
        *(moment for j in last_two_and_first_two for moment in _moments_of_block(step, ranks, j, always, root, block)),
        # A tied matrix has its gradient as the output's, the one as the embedding's, and the sum of the two.
        Moment("backward, embedding", **always, gathered=root.gathered, gradients=reduced, activations=step.batch,
               working=root_gradients + (2 * embedding if model.tied_embeddings else step.residual),
               buffers=block.reduce_scatter),
        # The gathered root is freed before its gradients are copied for the reduction.
        Moment("backward, root", **always, gradients=reduced, activations=step.batch, working=root_gradients,
               buffers=root.reduce_scatter),
        # The gradient that came last, the embedding's, is there until the backward pass has returned.
        Moment("backward, root reduced", **always, gradients=reduced, activations=step.batch, working=embedding,
               buffers=root.reduce_scatter * (1 + 1 / ranks)),
        Moment("optimizer step", **always, gradients=states.gradients, temporaries=step.temporaries,
               activations=step.batch),
    )  # fmt: skip


def _moments_of_block(
    step: Step, ranks: int, j: int, always: dict[str, float], root: UnitBuffers, block: UnitBuffers
) -> list[Moment]:
    """The backward pass of block j. What full recomputation brought back is working memory, else it is activations."""
    model, kept, full = step.model, step.activations, step.full_recomputation
    reducing = block.reduce_scatter if j < kept.layers - 1 else 0
    gathering = block.all_gather if ranks > 1 else 0
    prefetching = gathering if j and step.prefetch else 0
    inputs = (j + full) * kept.per_layer + step.batch  # of the blocks before, and of this one if it is brought back

    def moment(place: str, left: float, working: float, gathering: float = prefetching) -> Moment:
        return Moment(
            f"backward, block {j}, {place}",
            **always,
            gathered=root.gathered + block.gathered,
            gradients=(kept.layers - 1 - j) * _gradient_shard(step, ranks),
            activations=inputs + (0 if full else left),
            working=step.head_gradients + working + (left if full else 0),
            buffers=gathering + reducing,
        )

    left, working = step.in_mlp()
    held, attending = step.in_attention()
    moments = [
        moment("MLP", left, step.down_gradient + working),
        moment("norm", step.below_mlp, step.mlp_gradients + step.in_norm(first=False)),
        moment("attention", held, step.mlp_gradients + step.output_gradient + attending),
        moment("end", 0, step.element * model.parameters_per_layer + step.in_norm(first=True)),
    ]
    if j:
        return moments
    # Nothing is prefetched behind block 0; its own buffer is still there when its parameters are cut out of it.
    return [moment("gathered", 0 if full else kept.per_layer, step.residual, gathering), *moments]


def _gradient_shard(step: Step, ranks: int) -> float:
    """Of one block."""
    return step.recipe.gradients * fsdp2_shard(step.model.layer_tensors, ranks)
