"""The moments of a step with whole weights on every rank: ddp, zero1 and zero2."""

from __future__ import annotations

from utils.theory.allocations import deepspeed_reduce_buckets
from utils.theory.moments import Moment, Step


def moments_of_whole_weights(step: Step, strategy: str) -> tuple[Moment, ...]:
    """All weights are there at any time. Gradients are taken as whole, or as a share, throughout.

    ddp's buckets and DeepSpeed's reduce buckets are buffers. DeepSpeed allocates its own for the backward pass. Where
    ddp's buckets are copies, they alone are there before the backward pass (the gradients were set to None behind the
    last step), and the gradients come one by one.

    Against the peak of a second step on one rank as MemTracker traces it (gradients kept all along, fp32 and bf16; one
    to four blocks; with recomputation and without; `tests/theory/test_moments_whole.py`): Llama's blocks to the byte,
    GPT's up to 0.04% more; in fp32 beside an MLP narrower than half the model up to 3% more.
    """
    states, kept, full = step.states, step.activations, step.full_recomputation
    always = {"weights": states.weights, "master_weights": states.master_weights, "optimizer": states.optimizer}
    buffers = states.buckets
    if strategy != "ddp":
        buffers += deepspeed_reduce_buckets(step.recipe.communicated_gradients, step.bucket_elements)
    every = states.gradients
    none = 0.0 if states.buckets else every
    of_head = every * step.model.embedding_parameters / step.model.parameters if states.buckets else every
    layers, batch = kept.layers * kept.per_layer, step.batch
    above = layers if full else layers - kept.per_layer  # with the last block's input, if it is brought back

    def in_block(place: str, gradients: float, inputs: float, left: float, working: float) -> Moment:
        return Moment(
            f"backward, {place}",
            **always,
            gradients=gradients,
            activations=inputs + batch + (0 if full else left),
            working=working + (left if full else 0),
            buffers=buffers,
        )

    return (
        Moment("loss", **always, gradients=none, activations=layers + kept.head + batch,
               logits=kept.logits + kept.at_loss, buffers=buffers),
        Moment("backward, last norm", **always, gradients=of_head, activations=layers + batch,
               working=step.in_last_norm(), buffers=buffers),
        in_block("last block's MLP end", of_head, above, *step.in_last_matrix()),
        in_block("last block's MLP", of_head, above, *step.in_mlp()),
        in_block("last block's norm", of_head, above, step.below_mlp, step.in_norm(first=False)),
        in_block("last block's attention", of_head, above, *step.in_attention()),
        in_block("last block's end", of_head, above, 0, step.in_norm(first=True)),
        in_block("first block's end", every, kept.per_layer if full else 0, 0, step.in_norm(first=True)),
        Moment("optimizer step", **always, gradients=every, temporaries=step.temporaries, activations=batch,
               buffers=states.buckets),
    )  # fmt: skip
