"""What an `Architecture` may be made of: biases, norms, and the order in which a module registers its tensors."""

from __future__ import annotations

from typing import NamedTuple

#: Which matrices of a layer carry a bias.
BIASES: dict[str, tuple[str, ...]] = {
    "none": (),
    "qkv": ("qkv",),
    "attention": ("qkv", "output"),
    "all": ("qkv", "output", "mlp"),
}
#: What a norm holds.
NORMS: dict[str, tuple[str, ...]] = {
    "rms": ("weight",),
    "layer": ("weight", "bias"),
    "layer without bias": ("weight",),
    "layer without parameters": (),
}
QK_NORMS: tuple[str, ...] = ("none", "per head", "full width")


class Layout(NamedTuple):
    """The order in which a module registers its parameters; what an architecture lacks is passed over.

    root: the parts outside the layers, and where the layers stand among them. layer: the parts of a layer.
    projections: of the attention, before its output.
    """

    root: tuple[str, ...]
    layer: tuple[str, ...]
    projections: tuple[str, ...]


_NORMS = ("norm_1", "norm_2", "norm_3", "norm_4")
_SEPARATE = ("query", "key", "value")
_ENDS_AFTER = ("embedding", "positions", "project_out", "project_in", "layers", "final_norm", "head")

#: Read off named_parameters() of transformers 5.24.0; MPT off llm-foundry, llmfoundry/models/mpt and layers/blocks.py.
LAYOUTS: dict[str, Layout] = {
    "llama": Layout(_ENDS_AFTER, ("attention", "mlp", *_NORMS), _SEPARATE),
    "gpt-2": Layout(_ENDS_AFTER, ("norm_1", "attention", "norm_2", "mlp", "norm_3", "norm_4"), ("query_key_value",)),
    "gpt-neox": Layout(_ENDS_AFTER, (*_NORMS, "attention", "mlp"), ("query_key_value",)),
    "opt": Layout(
        ("embedding", "positions", "project_out", "project_in", "final_norm", "layers", "head"),
        ("attention", "norm_1", "mlp", "norm_2", "norm_3", "norm_4"),
        ("key", "value", "query"),
    ),
}
