"""A model's published `config.json`, as an `Architecture`.

Sources of the fields' names and of what a missing one means: the configuration classes of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from utils.theory import families
from utils.theory.architecture import Architecture
from utils.theory.arguments import unknown

#: By the config's model_type.
FAMILIES: dict[str, Callable[..., Architecture]] = {
    "llama": families.llama,
    "mistral": families.mistral,
    "qwen2": families.qwen2,
    "qwen3": families.qwen3,
    "gemma": families.gemma,
    "gemma2": families.gemma2,
    "olmo": families.olmo,
    "olmo2": families.olmo2,
    "gpt2": families.gpt2,
    "gpt_neox": families.pythia,
    "opt": families.opt,
}
_NAMES = {
    "hidden": ("hidden_size", "n_embd"),
    "layers": ("num_hidden_layers", "n_layer"),
    "heads": ("num_attention_heads", "n_head"),
    "vocabulary": ("vocab_size",),
}
_OPTIONAL = {
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "ffn": ("intermediate_size", "ffn_dim", "n_inner"),
    "tied_embeddings": ("tie_word_embeddings",),
}


def from_config(config: Mapping[str, Any]) -> Architecture:
    """The architecture that a config.json of a known family describes: `from_config(json.load(open("config.json")))`.

    Fields that bear no parameters are not looked at. Raises ValueError, in one sentence, for another model_type, for a
    missing size, and for what no `Architecture` can be.
    """
    if not isinstance(config, Mapping):
        raise ValueError(
            f"config is a {type(config).__name__}; give the dictionary that json.load makes of config.json"
        )
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(unknown("model_type", kind, tuple(FAMILIES)))
    sizes = {field: _size(config, names) for field, names in (_NAMES | _OPTIONAL).items()}
    for field, names in _NAMES.items():
        if sizes[field] is None:
            raise ValueError(f"the config has no {' or '.join(names)}: a model of type {kind!r} needs it")
    given = {field: value for field, value in sizes.items() if value is not None}
    return FAMILIES[kind](**given, **_special(kind, config))


def _size(config: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _special(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """What some families say in fields of their own."""
    if kind == "gpt2":
        return {"positions": config.get("n_positions", 1024)}
    if kind == "opt":
        return {
            "positions": config.get("max_position_embeddings", 2048),
            "embedding_width": config.get("word_embed_proj_dim"),
            "final_norm": config.get("do_layer_norm_before", True)
            and not config.get("_remove_final_layer_norm", False),
        }
    return {"biases": "attention"} if config.get("attention_bias") and kind not in ("qwen2", "gpt_neox") else {}
