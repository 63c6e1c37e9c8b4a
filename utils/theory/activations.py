"""Bytes of activations: what a forward pass keeps for the backward pass.

Law, Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv:2205.05198, section 4
and Table 2, for GPT with 16-bit activations, s tokens, micro-batch b, width h, a heads: sbh (34 + 5as/h) bytes per
layer. 34 = attention 11 + MLP 19 + norms 4, and 19 = 3 + 4 f/h with a width f of the MLP other than 4h. FlashAttention
or selective recomputation drop 5as/h; full recomputation keeps 2sbh. Under tensor parallelism t divides what lies
inside attention and MLP: 10 + 24/t + 5as/(ht); with sequence parallelism it divides everything.

A gated MLP keeps four tensors of width f (gate, its activation, up, their product) where a plain one keeps two, and
has no dropout: 2 + 8 f/h. Grouped queries keep narrower keys and values. Which further copies an implementation keeps
stands in `kept.IMPLEMENTATIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.architecture import Architecture, check_model
from utils.theory.arguments import check_choice, check_divisor, check_one_of, check_whole, check_yes_or_no
from utils.theory.kept import IMPLEMENTATIONS, Kept

MLP_TERMS = ("MLP input", "inside the MLP", "MLP dropout mask")
RECOMPUTATIONS: tuple[str, ...] = ("none", "selective", "full")


@dataclass(frozen=True)
class Term:
    """One kept tensor of a layer, or several of a kind. split: whether tensor parallelism divides it."""

    name: str
    bytes: int
    split: bool = True


@dataclass(frozen=True)
class Activations:
    """Bytes of activations on one GPU when the forward pass ends, term by term.

    terms: of one layer, after recomputation and tensor parallelism. layers: how many layers there are.
    recomputed: full recomputation brings one layer back while its backward pass runs, all of it that is not the
    layer's input; 0 otherwise.
    head: the last norm and the input of the output matrix. logits: kept for the loss, fp32 unless told otherwise.
    at_loss: further copies of the logits while the loss is differentiated, the gradient among them; not in `total`.
    """

    terms: tuple[tuple[str, float], ...]
    layers: int
    recomputed: float
    head: float
    logits: float
    at_loss: float

    @property
    def per_layer(self) -> float:
        return sum(size for _, size in self.terms)

    @property
    def total(self) -> float:
        """All layers, the one that is recomputed, head and logits; not `at_loss`."""
        return self.layers * self.per_layer + self.recomputed + self.head + self.logits


def activation_bytes(
    model: Architecture,
    sequence: int,
    micro_batch: int = 1,
    recomputation: str = "none",
    flash_attention: bool = True,
    implementation: str = "paper",
    element_bytes: int = 2,
    logit_bytes: int = 4,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
) -> Activations:
    """Bytes of activations of one micro-batch on one GPU.

    Args:
        model: its architecture.
        sequence: tokens in one sequence, s; no more than there are learned positions. micro_batch: sequences at once on
            one GPU, b.
        recomputation: "none"; "selective", the attention's s² terms are recomputed; "full", each layer keeps its input.
        flash_attention: keep no s² terms.
        implementation: a name in `IMPLEMENTATIONS`. "paper" counts what must be kept; "torch" and "transformers" what
            those keep when no compiler fuses their operations.
        element_bytes: of an activation, 2 or 4. logit_bytes: of a logit in the loss, 2 or 4; 0 leaves them out.
        tensor_parallel: t, a divisor of the heads, of those of keys too. sequence_parallel: divide also what tensor
            parallelism does not.

    Raises ValueError, in one sentence, naming the value, what is allowed and what to do.
    """
    check_model(model)
    check_whole("sequence", sequence, "a number of tokens")
    check_whole("micro_batch", micro_batch, "a number of sequences")
    if model.learned_positions and sequence > model.learned_positions:
        raise ValueError(
            f"sequence is {sequence}, but the model has learned {model.learned_positions:,} positions: give no more"
        )
    check_choice("recomputation", recomputation, RECOMPUTATIONS)
    check_choice("implementation", implementation, IMPLEMENTATIONS)
    check_yes_or_no("flash_attention", flash_attention)
    check_yes_or_no("sequence_parallel", sequence_parallel)
    check_one_of("element_bytes", element_bytes, (2, 4))
    check_one_of("logit_bytes", logit_bytes, (0, 2, 4))
    for heads, of in ((model.heads, "the heads"), (model.kv_heads, "the heads of keys")):
        check_divisor("tensor_parallel", tensor_parallel, heads, of, "the heads are shared out among as many GPUs")
    t, kept = int(tensor_parallel), IMPLEMENTATIONS[implementation]
    tokens, sequence, size = int(sequence) * int(micro_batch), int(sequence), int(element_bytes)
    whole = [
        *layer_terms(model, tokens, kept, size),
        *attention_core(model, tokens, sequence, kept, size, flash_attention, recomputation == "selective"),
    ]
    split = [(term.name, term.bytes / t if term.split or sequence_parallel else term.bytes) for term in whole]
    full = recomputation == "full"
    layer_input = tokens * model.hidden * size
    held_input = layer_input / t if sequence_parallel else layer_input
    brought_back = sum(b for _, b in split)
    if model.norms_per_layer and kept.keeps_norm_input(model.norm == "rms", size):
        brought_back -= held_input
    logits = tokens * model.vocabulary * int(logit_bytes)
    head = sum(term.bytes for term in _norm(model, "last norm", tokens, model.hidden, kept, size)) + layer_input
    return Activations(
        terms=(("layer input", held_input),) if full else tuple((name, b) for name, b in split if b),
        layers=model.layers,
        recomputed=brought_back if full else 0,
        head=head / t if sequence_parallel else head,
        logits=logits / t,
        at_loss=(kept.loss_copies - 1) * logits / t,
    )


def layer_terms(model: Architecture, tokens: int, kept: Kept, size: int) -> list[Term]:
    """What one layer keeps beside the attention's s² terms."""
    h, queries, groups = model.hidden, model.heads * model.head_dim, model.kv_heads * model.head_dim
    keys = queries if kept.repeats_keys else groups
    masks = kept.dropout and not model.gated_mlp
    terms = [
        term for i in range(model.norms_per_layer) for term in _norm(model, f"norm {i + 1}", tokens, h, kept, size)
    ]
    terms += [
        Term("attention input", tokens * h * size, split=False),
        Term("queries", tokens * queries * size),
        Term("keys and values", 2 * tokens * keys * size),
        Term("attention output", kept.attention_outputs * tokens * queries * size),
        Term("attention dropout mask", tokens * h if masks else 0, split=False),
        Term("MLP input", tokens * h * size, split=False),
        Term("inside the MLP", (4 if model.gated_mlp else 2) * tokens * model.ffn * size),
        Term("MLP dropout mask", tokens * h if masks else 0, split=False),
    ]
    if model.qk_norms != "none":
        per_head = model.qk_norms == "per head"
        terms += _norm(model, "query norm", tokens, queries, kept, size, model.heads if per_head else 1)
        terms += _norm(model, "key norm", tokens, groups, kept, size, model.kv_heads if per_head else 1)
    return terms


def attention_core(
    model: Architecture, tokens: int, sequence: int, kept: Kept, size: int, flash: bool, recomputed: bool
) -> list[Term]:
    """What grows with s² (softmax, its dropout mask and what dropout leaves), or FlashAttention's statistics."""
    if flash or recomputed:
        return [Term("softmax statistics", 4 * model.heads * tokens if kept.statistics else 0)]
    each = size + kept.softmax_fp32
    if kept.dropout and not model.gated_mlp:
        each += 1 + size
    return [Term("softmax", each * model.heads * tokens * sequence)]


def zero_activation_bytes(hidden: int, layers: int, sequence: int, batch: int, checkpointing: bool = False) -> int:
    """The ZeRO paper's estimate for GPT-like models (arXiv:1910.02054v3, section 3.2 and footnote 3), 16 bit.

    12 h b s L elements of 2 bytes; with checkpointing one layer input each, 2 h b s L bytes. It is coarser than
    `activation_bytes`: attention's s² terms are left out. Raises ValueError for numbers below 1 or not whole.
    """
    for name, value in (("hidden", hidden), ("layers", layers), ("sequence", sequence), ("batch", batch)):
        check_whole(name, value, "a size of the model or its input")
    check_yes_or_no("checkpointing", checkpointing)
    return (1 if checkpointing else 12) * 2 * int(hidden) * int(layers) * int(sequence) * int(batch)


def _norm(
    model: Architecture, name: str, tokens: int, width: int, kept: Kept, size: int, groups: int = 1
) -> list[Term]:
    """What a norm over `width`, in `groups` parts, keeps beside its output."""
    rms = model.norm == "rms"
    copies = 4 * kept.rms_fp32 + size * kept.rms_copies if rms else size * kept.layer_norm_copies
    statistics = (4 if rms else 8) * groups * tokens if kept.statistics else 0
    return [Term(name, copies * tokens * width + statistics, split=False)]
