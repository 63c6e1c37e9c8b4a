"""The moments of a training step at which memory can be at its largest, each with its parts in bytes.

Which tensors are alive at each moment was read off runs of PyTorch's FSDPMemTracker (torch 2.13, fake tensors, blocks
as in Llama and GPT, fp32 shards gathered in bf16 and in fp32, with and without recomputation). In bf16 Llama's totals
are reproduced to the byte; elsewhere a norm's gradient or LayerNorm's statistics differ, by at most 0.2%.
The backward pass works on block j, from the last to the first:

- blocks 0 to j still have their activations, the blocks behind j their gradient shards;
- FSDP holds root and block j gathered, block j-1 being gathered, block j+1 being reduced;
- inside the block memory is largest behind the MLP's last matrix, at the norm before the MLP, or at its end, which is
  the norm before the attention.

All of it changes linearly from block to block, so the largest is found among the first two and the last two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from utils.theory.activations import MLP_TERMS, Activations, layer_terms
from utils.theory.allocations import DEEPSPEED_BUCKET_ELEMENTS, deepspeed_reduce_buckets, fsdp2_shard, unit_buffers
from utils.theory.architecture import Architecture
from utils.theory.kept import Kept
from utils.theory.memory import ModelStates
from utils.theory.recipes import Recipe


@dataclass(frozen=True)
class Moment:
    """Bytes on one GPU at one moment of a step.

    weights: with whatever is sharded as a shard. gathered: weights gathered from other ranks. gradients: those that are
    kept for the optimizer. activations: kept for the backward pass, the batch included. logits: kept, and copies while
    the loss is differentiated. working: gradients of activations, and of weights that are not yet reduced; with full
    recomputation also the layer that was brought back. buffers: of communication.
    """

    name: str
    weights: float = 0.0
    gathered: float = 0.0
    gradients: float = 0.0
    master_weights: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    working: float = 0.0
    buffers: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The bytes of every part, by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)[1:]}

    @property
    def total(self) -> float:
        """The sum of the parts, in their order."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Step:
    """What the moments of one step are made of. Sizes in bytes.

    states: on one GPU, at the optimizer's step. element: bytes of a gathered weight and of an activation; reduced: of a
    gradient while it is reduced. batch: token ids, labels and the loss. bucket_elements: of DeepSpeed's reduce bucket.
    """

    model: Architecture
    kept: Kept
    tokens: int
    activations: Activations
    states: ModelStates
    recipe: Recipe
    element: int
    reduced: int
    prefetch: bool
    batch: int
    bucket_elements: int = DEEPSPEED_BUCKET_ELEMENTS

    @property
    def wide(self) -> int:
        """One tensor of the MLP's width."""
        return self.tokens * self.model.ffn * self.element

    @property
    def residual(self) -> int:
        """One tensor of the residual stream."""
        return self.tokens * self.model.hidden * self.element

    @property
    def full_recomputation(self) -> bool:
        return bool(self.activations.recomputed)

    @property
    def head_gradients(self) -> int:
        """Gradients of the output matrix and the last norm, which wait for the root's other gradients."""
        norm = sum(t.parameters for t in self.model.root_tensors if "norm" in t.name)
        return self.element * (self.model.embedding_parameters + norm)

    def in_mlp(self) -> tuple[float, float]:
        """(activations of the block still kept, gradients in work) behind the backward pass of the MLP's last matrix.

        Its input is done with; there are gradients of that input, of the two factors it is made of (of what the
        activation function took, without a gate), and of the residual stream.
        """
        layer = self.activations.recomputed or self.activations.per_layer
        return layer - self.wide, (3 if self.model.gated_mlp else 2) * self.wide + self.residual

    @property
    def below_mlp(self) -> float:
        """What is left of a block's activations when the backward pass has come through the MLP and its norm."""
        terms = layer_terms(self.model, self.tokens, self.kept, self.element)
        done = sum(term.bytes for term in terms if term.name in (f"norm {self.model.norms_per_layer}", *MLP_TERMS))
        return (self.activations.recomputed or self.activations.per_layer) - done

    def in_norm(self, first: bool) -> float:
        """Activations and gradients in work in the backward pass of a block's norm. first: that before the attention,
        whose input is the block's.
        """
        rms = self.model.norm == "rms"
        each = self.kept.rms_backward if rms else self.kept.layer_norm_backward
        whole = self.tokens * self.model.hidden * each[self.element // 4]
        counted = first and self.full_recomputation and self.kept.keeps_norm_input(rms, self.element)
        return whole - (self.residual if counted else 0)  # the layer's input is counted among the activations

    @property
    def down_gradient(self) -> int:
        """The gradient of the MLP's last matrix."""
        return self.element * self.model.ffn * self.model.hidden

    @property
    def mlp_gradients(self) -> int:
        """The gradients of all matrices of the MLP and of its norm."""
        tensors = [t for t in self.model.layer_tensors if "mlp" in t.name or t.name.startswith("norm_2")]
        return self.element * sum(tensor.parameters for tensor in tensors)


def moments_of_whole_weights(step: Step, strategy: str) -> tuple[Moment, ...]:
    """ddp, zero1 and zero2: all weights are there at any time. Gradients are taken as whole, or as a share, throughout.

    ddp's buckets and DeepSpeed's reduce buckets are buffers. DeepSpeed allocates its own for the backward pass.
    """
    states, kept = step.states, step.activations
    always = {
        "weights": states.weights,
        "gradients": states.gradients,
        "master_weights": states.master_weights,
        "optimizer": states.optimizer,
    }
    buffers = states.buckets
    if strategy != "ddp":
        buffers += deepspeed_reduce_buckets(step.recipe.communicated_gradients, step.bucket_elements)
    layers = kept.layers * kept.per_layer
    before = layers - (0 if step.full_recomputation else kept.per_layer)
    left, working = step.in_mlp()
    first_left = (left, 0) if not step.full_recomputation else (0, left)
    return (
        Moment("loss", **always, activations=layers + kept.head + step.batch, logits=kept.logits + kept.at_loss,
               buffers=buffers),
        Moment("backward, last block's MLP", **always, activations=before + first_left[0] + step.batch,
               working=working + first_left[1], buffers=buffers),
        Moment("backward, last block's end", **always, activations=before + step.batch,
               working=step.in_norm(first=True), buffers=buffers),
        Moment("optimizer step", **always, activations=step.batch, buffers=states.buckets),
    )  # fmt: skip


def moments_of_sharded_weights(step: Step, ranks: int) -> tuple[Moment, ...]:
    """zero3, fsdp and hsdp: shards, and of the whole what is in use. zero3 is reckoned as fsdp.

    ranks: that share one copy of the model.
    """
    model, states, kept = step.model, step.states, step.activations
    layers = kept.layers
    root = unit_buffers(model.root_tensors, ranks, step.element, step.reduced)
    root_gradients = step.element * (model.parameters - layers * model.parameters_per_layer)
    always = {"weights": states.weights, "master_weights": states.master_weights, "optimizer": states.optimizer}
    activations = layers * kept.per_layer + kept.head + step.batch
    last_two_and_first_two = sorted({0, min(1, layers - 1), max(0, layers - 2), layers - 1}, reverse=True)
    return (
        Moment("loss", **always, gathered=root.gathered, activations=activations, logits=kept.logits + kept.at_loss),
        *(moment for j in last_two_and_first_two for moment in _moments_of_block(step, ranks, j, always)),
        # The gathered root is freed before its gradients are copied for the reduction.
        Moment("backward, root", **always, gradients=layers * _gradient_shard(step, ranks), activations=step.batch,
               working=root_gradients, buffers=root.reduce_scatter),
        Moment("optimizer step", **always, gradients=states.gradients, activations=step.batch),
    )  # fmt: skip


def _moments_of_block(step: Step, ranks: int, j: int, always: dict[str, float]) -> list[Moment]:
    """The backward pass of block j. What full recomputation brought back is working memory, else it is activations."""
    model, kept, full = step.model, step.activations, step.full_recomputation
    root = unit_buffers(model.root_tensors, ranks, step.element, step.reduced)
    block = unit_buffers(model.layer_tensors, ranks, step.element, step.reduced)
    reducing = block.reduce_scatter if j < kept.layers - 1 else 0
    prefetching = block.all_gather if j and step.prefetch else 0
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
    moments = [
        moment("MLP", left, step.down_gradient + working),
        moment("norm", step.below_mlp, step.mlp_gradients + step.in_norm(first=False)),
        moment("end", 0, step.element * model.parameters_per_layer + step.in_norm(first=True)),
    ]
    if j:
        return moments
    # Nothing is prefetched behind block 0; its own buffer is still there when its parameters are cut out of it.
    return [moment("gathered", 0 if full else kept.per_layer, step.residual, block.all_gather), *moments]


def _gradient_shard(step: Step, ranks: int) -> float:
    """Of one block."""
    return step.recipe.gradients * fsdp2_shard(step.model.layer_tensors, ranks)
