"""A model's published `config.json`, as an `Architecture`.

Sources of the fields' names and of what a missing one means: the configuration classes of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from utils.theory import families
from utils.theory.architecture import Architecture
from utils.theory.arguments import check_choice, check_yes_or_no
from utils.theory.units import shown

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
    "mpt": families.mpt,
}
_NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocabulary": ("vocab_size",),
}
_OPTIONAL = {
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "ffn": ("intermediate_size", "ffn_dim", "n_inner"),
    "tied_embeddings": ("tie_word_embeddings",),
}


#: Sizes that do not follow from the others: where one is left out, transformers takes a number of its own.
_NEEDED = {
    "ffn": ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo", "olmo2", "gpt_neox", "opt"),
    "kv_heads": ("mistral", "qwen2", "qwen3", "gemma", "gemma2"),
    "head_dim": ("qwen3", "gemma", "gemma2"),
}
_ATTENTION_BIAS = ("llama", "qwen3", "gemma", "gemma2", "olmo", "olmo2")  # queries, keys, values and output
#: Fields that change what a module holds in a way that no `Architecture` says, and the value at which they do not.
_UNUSUAL = {
    "gpt2": {"add_cross_attention": False},
    "gpt_neox": {"attention_bias": True},
    "mpt": {"expansion_ratio": 4},
}


def from_config(config: Mapping[str, Any]) -> Architecture:
    """The architecture that a config.json of a known family describes: `from_config(json.load(open("config.json")))`.

    Fields that bear no parameters are not looked at. Raises ValueError, in one sentence, for another model_type, for a
    missing size that does not follow from the others, and for what no `Architecture` can be.
    """
    if not isinstance(config, Mapping):
        raise ValueError(
            f"config is a {type(config).__name__}; give the dictionary that json.load makes of config.json"
        )
    kind = config.get("model_type")
    check_choice("model_type", kind, FAMILIES)
    sizes = {field: _size(config, names) for field, names in (_NAMES | _OPTIONAL).items()}
    for field, names in (_NAMES | _OPTIONAL).items():
        missing = sizes[field] is None and (field in _NAMES or kind in _NEEDED.get(field, ()))
        if missing and not (field == "kv_heads" and names[0] in config):  # null is as many as there are heads
            raise ValueError(f"the config has no {' or '.join(names)}: a model of type {kind!r} needs it")
    for field, usual in _UNUSUAL.get(kind, {}).items():
        if config.get(field, usual) != usual:
            raise ValueError(f"{field} is {shown(config[field])}; of a {kind!r} with that no count is known here")
    given = {field: value for field, value in sizes.items() if value is not None}
    return FAMILIES[kind](**given, **_special(kind, config))


def _size(config: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _flag(config: Mapping[str, Any], name: str, left_out: bool) -> bool:
    value = config.get(name, left_out)
    check_yes_or_no(name, value)
    return value


def _special(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """What some families say in fields of their own."""
    if kind == "gpt2":
        positions = _size(config, ("n_positions", "max_position_embeddings"))
        return {"positions": 1024 if positions is None else positions}
    if kind == "opt":
        affine = _flag(config, "layer_norm_elementwise_affine", True)
        return {
            "positions": config.get("max_position_embeddings", 2048),
            "embedding_width": config.get("word_embed_proj_dim"),
            "final_norm": _flag(config, "do_layer_norm_before", True)
            and not _flag(config, "_remove_final_layer_norm", False),
            "biases": "all" if _flag(config, "enable_bias", True) else "none",
            "norm": "layer" if affine else "layer without parameters",
        }
    if kind == "mpt":
        attention = config.get("attn_config") or {}
        if isinstance(attention, Mapping) and (not attention.get("alibi", True) or attention.get("qk_ln", False)):
            raise ValueError("attn_config has no alibi, or has qk_ln: of an 'mpt' with that no count is known here")
        return {"positions": 0, "biases": "none", "norm": "layer without bias"}
    attention = kind in _ATTENTION_BIAS and _flag(config, "attention_bias", False)
    if kind == "llama" and _flag(config, "mlp_bias", False):
        if not attention:
            raise ValueError("mlp_bias is True, but attention_bias is not: of that no count is known here")
        return {"biases": "all"}
    return {"biases": "attention"} if attention else {}
