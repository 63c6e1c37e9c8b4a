"""Configurations as they are published, and what is refused of them."""

import pytest

from utils.theory.model_config import FAMILIES, from_config
from utils.theory.models import PRESETS

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
    "rms_norm_eps": 1e-05,
}
# Sizes of the configurations at Hugging Face, in each family's own words.
PUBLISHED = {
    "Llama-2-7B": LLAMA,
    "GPT-2": {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    },
    "OPT-350M": {
        "model_type": "opt",
        "hidden_size": 1024,
        "word_embed_proj_dim": 512,
        "ffn_dim": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "max_position_embeddings": 2048,
        "do_layer_norm_before": False,
        "vocab_size": 50272,
    },
    "Qwen3-0.6B": {
        "model_type": "qwen3",
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_hidden_layers": 28,
        "head_dim": 128,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "vocab_size": 151936,
    },
    "Pythia-12B": {
        "model_type": "gpt_neox",
        "hidden_size": 5120,
        "intermediate_size": 20480,
        "num_attention_heads": 40,
        "num_hidden_layers": 36,
        "tie_word_embeddings": False,
        "vocab_size": 50688,
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_is_the_preset(name):
    assert from_config(PUBLISHED[name]) == PRESETS[name]


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_reads_its_sizes(kind):
    sizes = {"n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, "model_type": kind}
    others = {"num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 256}
    more = {"positions": 0, "biases": "none", "norm": "layer without bias"} if kind == "mpt" else {}
    made = FAMILIES[kind](64, 2, 4, kv_heads=4, head_dim=16, ffn=256, vocabulary=100, **more)
    assert from_config({**sizes, **others}) == made


#: Counts of the modules that transformers 5.24.0 builds on the meta device from such configurations.
COUNTED = [
    ({**LLAMA, "attention_bias": True, "mlp_bias": True}, 6738415616 + 32 * (4 * 4096 + 2 * 11008 + 4096)),
    ({**PUBLISHED["OPT-350M"], "enable_bias": False}, 330975232),
    ({**PUBLISHED["OPT-350M"], "layer_norm_elementwise_affine": False}, 331098112),
    ({"model_type": "gpt2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "max_position_embeddings": 48, "vocab_size": 100}, 109568),
    ({"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100}, 105024),
    ({**LLAMA, "num_key_value_heads": None}, 6738415616),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(COUNTED)))
def test_fields_that_change_what_a_module_holds(case):
    config, parameters = COUNTED[case]
    assert from_config(config).parameters == parameters


def test_llama_with_biases_in_its_attention():
    biased = from_config({**LLAMA, "attention_bias": True})
    assert biased.parameters - PRESETS["Llama-2-7B"].parameters == 32 * 4 * 4096


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({**LLAMA, "model_type": "llama2"}, "model_type is 'llama2', .* did you mean 'llama'"),
        ({**LLAMA, "model_type": None}, "model_type is None, .* choose one of llama, mistral"),
        ({**LLAMA, "hidden_size": None}, "the config has no hidden_size or n_embd"),
        ({**LLAMA, "num_key_value_heads": 5}, "kv_heads is 5"),
        ("config.json", "config is a str; give the dictionary"),
        ({**LLAMA, "mlp_bias": True}, "mlp_bias is True, but attention_bias is not"),
        ({**LLAMA, "attention_bias": "yes"}, "attention_bias is 'yes'; it is yes or no"),
        (
            {k: v for k, v in LLAMA.items() if k != "intermediate_size"},
            "has no intermediate_size or ffn_dim or n_inner",
        ),
        ({**PUBLISHED["Pythia-12B"], "attention_bias": False}, "attention_bias is False; of a 'gpt_neox' with that"),
        ({**PUBLISHED["GPT-2"], "add_cross_attention": True}, "add_cross_attention is True"),
        (
            {k: v for k, v in PUBLISHED["Qwen3-0.6B"].items() if k != "head_dim"},
            "has no head_dim: a model of .* needs it",
        ),
        (
            {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"} | {"model_type": "mistral"},
            "has no num_key_value_heads: a model of type 'mistral' needs it",
        ),
    ],
)
def test_other_configurations_are_refused(config, says):
    with pytest.raises(ValueError, match=says):
        from_config(config)
