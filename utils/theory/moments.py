"""The moments of a training step at which memory can be at its largest: what each is made of.

Which tensors are alive at each moment was read off runs of PyTorch's trackers (torch 2.13, fake tensors, blocks as in
Llama and GPT). `moments_whole` and `moments_sharded` put the moments together, the latter says how well.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from utils.theory.activations import MLP_TERMS, Activations, layer_terms
from utils.theory.architecture import Architecture
from utils.theory.kept import Kept
from utils.theory.memory import ModelStates
from utils.theory.recipes import Recipe


@dataclass(frozen=True)
class Moment:
    """Bytes on one GPU at one moment of a step.

    weights: with whatever is sharded as a shard. gathered: weights gathered from other ranks. gradients: those that are
    kept for the optimizer. temporaries: what the optimizer's step needs for a while. activations: kept for the backward
    pass, the batch included. logits: kept, and copies while the loss is differentiated. working: gradients of
    activations, and of weights that are not yet reduced; with full recomputation also the layer that was brought back.
    buffers: of communication.
    """

    name: str
    weights: float = 0.0
    gathered: float = 0.0
    gradients: float = 0.0
    master_weights: float = 0.0
    optimizer: float = 0.0
    temporaries: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    working: float = 0.0
    buffers: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The bytes of every part, by its name."""
        return {name: getattr(self, name) for name in _PARTS}

    @property
    def total(self) -> float:
        """The sum of the parts, in their order; written out, as a calculator asks a thousand moments at each move."""
        return (
            self.weights + self.gathered + self.gradients + self.master_weights + self.optimizer + self.temporaries
            + self.activations + self.logits + self.working + self.buffers
        )  # fmt: skip


_PARTS = tuple(field.name for field in fields(Moment))[1:]


@dataclass(frozen=True)
class Step:
    """What the moments of one step are made of. Sizes in bytes.

    states: on one GPU, at the optimizer's step; temporaries: of that step. element: bytes of a gathered weight and of
    an activation; reduced: of a gradient while it is reduced. batch: token ids, labels and the loss. bucket_elements:
    of DeepSpeed's reduce bucket.
    """

    model: Architecture
    kept: Kept
    tokens: int
    activations: Activations
    states: ModelStates
    recipe: Recipe
    element: int
    reduced: float
    prefetch: bool
    batch: int
    bucket_elements: int
    temporaries: float = 0.0

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
    def block(self) -> float:
        """Activations of a whole block, kept or brought back."""
        return self.activations.recomputed or self.activations.per_layer

    @property
    def head_gradients(self) -> int:
        """Gradients of the output matrix and the last norm, which wait for the root's other gradients."""
        norm = sum(t.parameters for t in self.model.root_tensors if "norm" in t.name)
        return self.element * (self.model.embedding_parameters + norm)

    def in_last_matrix(self) -> tuple[float, float]:
        """(activations of the block still kept, gradients in work) in the backward pass of the MLP's last matrix: of
        the residual stream, of the matrix's input, and of the matrix before it is added to those that are kept.
        """
        return self.block, self.residual + self.wide + self.down_gradient

    def in_mlp(self) -> tuple[float, float]:
        """The same behind the backward pass of the MLP's last matrix.

        Its input is done with; there are gradients of that input, of the two factors it is made of (of what the
        activation function took, without a gate), and of the residual stream.
        """
        return self.block - self.wide, (3 if self.model.gated_mlp else 2) * self.wide + self.residual

    def in_attention(self) -> tuple[float, float]:
        """The same in the attention's own backward pass: gradients of its output, of queries, keys and values, and of
        the residual stream.
        """
        queries, groups = self.model.heads * self.model.head_dim, self.model.kv_heads * self.model.head_dim
        keys = queries if self.kept.repeats_keys else groups
        return self.below_mlp, self.tokens * self.element * (2 * queries + 2 * keys) + self.residual

    @property
    def below_mlp(self) -> float:
        """What is left of a block's activations when the backward pass has come through the MLP and its norm."""
        terms = layer_terms(self.model, self.tokens, self.kept, self.element)
        done = sum(term.bytes for term in terms if term.name in (f"norm {self.model.norms_per_layer}", *MLP_TERMS))
        return self.block - done

    def in_norm(self, first: bool) -> float:
        """Activations and gradients in work in the backward pass of a block's norm. first: that before the attention,
        whose input is the block's.
        """
        counted = first and self.full_recomputation and self._keeps_norm_input
        return self._norm_backward - (self.residual if counted else 0)  # the layer's input is an activation

    def in_last_norm(self) -> float:
        """The same of the norm behind the last block, which nothing passes by."""
        return self._norm_backward - self.residual if self.model.final_norm else 0

    @property
    def forward_tensors(self) -> int:
        """The residual stream before and after the attention, the MLP's output and their sum, as far as they are not
        among the activations kept.
        """
        return (2 if self._keeps_norm_input else 4) * self.residual

    @property
    def unkept_tensors(self) -> int:
        """What a block's forward needs for a while under full recomputation, in its MLP: the residual stream twice, and
        the tensors of the MLP's width.
        """
        return 2 * self.residual + (3 if self.model.gated_mlp else 2) * self.wide

    @property
    def down_gradient(self) -> int:
        """The gradient of the MLP's last matrix."""
        return self.element * self.model.ffn * self.model.hidden

    @property
    def mlp_gradients(self) -> int:
        """The gradients of all matrices of the MLP and of its norm."""
        tensors = [t for t in self.model.layer_tensors if "mlp" in t.name or t.name.startswith("norm_2")]
        return self.element * sum(tensor.parameters for tensor in tensors)

    @property
    def output_gradient(self) -> int:
        """The gradient of the matrix behind the attention."""
        return self.element * self.model.heads * self.model.head_dim * self.model.hidden

    @property
    def _keeps_norm_input(self) -> bool:
        return self.kept.keeps_norm_input(self.model.norm == "rms", self.element)

    @property
    def _norm_backward(self) -> int:
        each = self.kept.rms_backward if self.model.norm == "rms" else self.kept.layer_norm_backward
        return self.tokens * self.model.hidden * each[self.element // 4]
