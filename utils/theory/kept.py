"""What implementations of a transformer layer keep for the backward pass: the conventions behind activation bytes.

A count of activations is a count of one implementation. Three are here: the paper's idealised one, and two that were
traced tensor by tensor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """One implementation. Sizes are copies of the tensor named, in bytes per element where it says so.

    rms_fp32: fp32 copies that an RMSNorm keeps, of its input's size; rms_copies: copies in the training precision,
    without its output, which the linear layer behind it keeps. layer_norm_copies: the same of a LayerNorm.
    statistics: whether fp32 statistics of norms and of FlashAttention are counted. attention_outputs: copies of the
    attention's output. repeats_keys: under grouped queries, keys and values are kept once per query head.
    softmax_fp32: bytes per entry that the softmax keeps in fp32 beside its result, without FlashAttention.
    dropout: whether a layer without gated MLP has dropout, whose masks take 1 byte.
    loss_copies: fp32 copies of the logits that live while the loss is differentiated; the first is kept from the
    forward pass. rms_backward, layer_norm_backward: bytes per element of the residual stream that live in the backward
    pass of a norm, its input included, for activations of (2, 4) bytes.
    """

    title: str
    source: str
    rms_fp32: int
    rms_copies: int
    layer_norm_copies: int
    statistics: bool
    attention_outputs: int
    repeats_keys: bool
    softmax_fp32: int
    dropout: bool
    loss_copies: int
    rms_backward: tuple[int, int]
    layer_norm_backward: tuple[int, int]

    def keeps_norm_input(self, rms: bool, size: int) -> bool:
        """Whether a norm keeps its input as it is, and not a copy in another precision. size: bytes per element."""
        return not rms or not self.rms_fp32 or size == 4


IMPLEMENTATIONS: dict[str, Kept] = {
    "paper": Kept(
        "fused norms, each input counted once, statistics neglected",
        "Korthikanti et al., arXiv:2205.05198, section 4.1 and 4.3, for GPT with dropout; carried over to gated MLPs "
        "and grouped queries by the same rules. The loss: fp32 logits and their gradient; the "
        "norm's backward: input and two gradients",
        rms_fp32=0, rms_copies=1, layer_norm_copies=1, statistics=False, attention_outputs=1, repeats_keys=False,
        softmax_fp32=0, dropout=True, loss_copies=2, rms_backward=(6, 12),
        layer_norm_backward=(6, 12),
    ),
    "torch": Kept(
        "torch.nn.RMSNorm as several operations, scaled_dot_product_attention, no dropout",
        "traced with torch 2.13 on the CPU: tensors kept in fake-tensor runs of FSDPMemTracker. The norm keeps its "
        "input and the scaled input in fp32",
        rms_fp32=2, rms_copies=0, layer_norm_copies=1, statistics=True, attention_outputs=1, repeats_keys=False,
        softmax_fp32=0, dropout=False, loss_copies=3, rms_backward=(26, 28),
        layer_norm_backward=(12, 24),
    ),
    "transformers": Kept(
        "Llama and Qwen3 as in Hugging Face transformers, eager norms, keys and values repeated for SDPA",
        "traced with transformers 4.53.0 and torch 2.13 on the CPU: tensors handed to saved-tensor hooks. The norm "
        "keeps its input in fp32 and the scaled input; SDPA's output is copied when heads are put side by side. The "
        "backward pass and the loss as in torch",
        rms_fp32=1, rms_copies=1, layer_norm_copies=1, statistics=True, attention_outputs=2, repeats_keys=True,
        softmax_fp32=4, dropout=False, loss_copies=3, rms_backward=(26, 28),
        layer_norm_backward=(12, 24),
    ),
}  # fmt: skip
