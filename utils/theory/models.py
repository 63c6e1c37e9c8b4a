"""Models by their architecture, from which the number of parameters follows.

Sources of the sizes: the models' published configurations, as collected in Lightning-AI/litgpt, litgpt/config.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral


@dataclass(frozen=True)
class Llama:
    """A decoder of the Llama family: RMSNorm with a weight and no bias, a gated MLP of three matrices, no biases.

    hidden: width h of the residual stream. layers: L. heads, kv_heads, head_dim: of the attention; the queries are
    heads * head_dim wide, keys and values kv_heads * head_dim each. ffn: width inside the MLP. vocabulary: V.
    tied_embeddings: whether the output matrix is the embedding.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    tied_embeddings: bool = False

    def __post_init__(self) -> None:
        for field in fields(self)[:-1]:
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{field.name} is {value!r}; a model has a whole number of at least 1 there")
            object.__setattr__(self, field.name, int(value))

    @property
    def parameters_per_layer(self) -> int:
        """Queries and output, keys and values, three matrices of the MLP, two norms."""
        queries_and_output = 2 * self.hidden * self.heads * self.head_dim
        keys_and_values = 2 * self.hidden * self.kv_heads * self.head_dim
        return queries_and_output + keys_and_values + 3 * self.hidden * self.ffn + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """Embedding, layers, last norm, and the output matrix unless it is the embedding."""
        embeddings = (1 if self.tied_embeddings else 2) * self.vocabulary * self.hidden
        return embeddings + self.layers * self.parameters_per_layer + self.hidden


PRESETS: dict[str, Llama] = {
    "Llama-3.2-1B": Llama(2048, 16, 32, 8, 64, 8192, 128256, tied_embeddings=True),
    "Llama-2-7B": Llama(4096, 32, 32, 32, 128, 11008, 32000),
    "Mistral-7B-v0.1": Llama(4096, 32, 32, 8, 128, 14336, 32000),
    "Llama-3-8B": Llama(4096, 32, 32, 8, 128, 14336, 128256),
    "Llama-2-13B": Llama(5120, 40, 40, 40, 128, 13824, 32000),
    "Llama-2-70B": Llama(8192, 80, 64, 8, 128, 28672, 32000),
    "Llama-3-70B": Llama(8192, 80, 64, 8, 128, 28672, 128256),
    "Llama-3.1-405B": Llama(16384, 126, 128, 8, 128, 53248, 128256),
}
