"""The rules of the model families: what an architecture has in each of them besides its sizes.

Llama and Mistral need no rule of their own: they are `Architecture` as it stands. Each rule was compared, tensor by
tensor, with the module that transformers 5.24.0 builds from the family's configuration; MPT's follows llm-foundry,
llmfoundry/models/mpt, whose published counts it reproduces. Further fields of `Architecture` may be given by name and
replace the family's. Errors are those of `Architecture`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from utils.theory.architecture import Architecture
from utils.theory.arguments import is_whole

llama = mistral = Architecture

#: Biases on queries, keys and values alone.
qwen2 = partial(Architecture, biases="qkv")
#: No biases; a norm on each head of queries and keys. head_dim is a number of its own, often not hidden / heads.
qwen3 = partial(Architecture, qk_norms="per head")
#: Always tied. head_dim is a number of its own (256; 128 in Gemma 2 27B).
gemma = partial(Architecture, tied_embeddings=True)
#: Norms before and after attention and MLP.
gemma2 = partial(Architecture, tied_embeddings=True, norms_per_layer=4)
#: LayerNorm without parameters, the last one too.
olmo = partial(Architecture, norm="layer without parameters")
#: Norms after attention and MLP, and on the full width of queries and keys.
olmo2 = partial(Architecture, qk_norms="full width")


_GPT: dict[str, Any] = {"gated_mlp": False, "biases": "all", "norm": "layer"}


def gpt2(
    hidden: int, layers: int, heads: int, positions: int = 1024, vocabulary: int = 50257, **more: Any
) -> Architecture:
    """GPT-2, and GPT-3 with 2048 positions: learned positions, all biases, LayerNorm with bias, an MLP of 4 h, tied."""
    family = _GPT | {"tied_embeddings": True, "learned_positions": positions, "layout": "gpt-2"}
    return Architecture(hidden, layers, heads, vocabulary=vocabulary, **family | more)


def mpt(
    hidden: int, layers: int, heads: int, positions: int = 2048, vocabulary: int = 50368, **more: Any
) -> Architecture:
    """MPT as llm-foundry trains it by default: GPT-2's parts, with as many learned positions as the sequence is long.

    The released MPT-7B and 30B differ: ALiBi in place of positions, no biases, not in the norms either, and 50432 rows.
    Give positions=0, vocabulary=50432, biases="none", norm="layer without bias".
    """
    return gpt2(hidden, layers, heads, positions, vocabulary, **more)


def pythia(hidden: int, layers: int, heads: int, vocabulary: int = 50304, **more: Any) -> Architecture:
    """GPT-NeoX and Pythia: rotary positions, all biases, LayerNorm with bias, an MLP of 4 h, an own output matrix."""
    return Architecture(hidden, layers, heads, vocabulary=vocabulary, **_GPT | {"layout": "gpt-neox"} | more)


def opt(
    hidden: int, layers: int, heads: int, positions: int = 2048, vocabulary: int = 50272, **more: Any
) -> Architecture:
    """OPT: learned positions, all biases, LayerNorm with bias, an MLP of 4 h, tied.

    Its table of positions has two rows more than the sequence is long. OPT-350M alone embeds in 512 and projects to
    1024 and back, has its norms after attention and MLP, and none at the end: embedding_width=512, final_norm=False.
    """
    rows = positions + 2 if is_whole(positions) else positions
    family = _GPT | {"tied_embeddings": True, "learned_positions": rows, "layout": "opt"}
    return Architecture(hidden, layers, heads, vocabulary=vocabulary, **family | more)
