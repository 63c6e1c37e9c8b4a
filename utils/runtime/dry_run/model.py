"""A decoder as a torch module, built from an `Architecture`: the same tensors under the same names.

Every preset can be built. Three things are left out, since they hold no parameters and none of them is in
`theory.kept.IMPLEMENTATIONS["torch"]`: rotary and ALiBi positions, dropout, and the capping of Gemma 2's logits. All
gated MLPs take SiLU, all others GELU. Layers are as in

- Llama, GPT-2, OPT: x + attention(norm(x)), then x + MLP(norm(x));
- GPT-NeoX and Pythia (layout "gpt-neox"): x + attention(norm(x)) + MLP(norm(x));
- Gemma 2 (four norms): x + norm(attention(norm(x))), the MLP alike;
- OLMo 2 (norms on the full width of queries and keys): x + norm(attention(x)), the MLP alike;
- OPT-350M (no final norm): norm(x + attention(x)), the MLP alike.

Layers of one or three norms are refused (`buildable.named_model`): where those stand is not known.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from utils.runtime.dry_run.buildable import arrangement
from utils.theory.architecture import Architecture
from utils.theory.shapes import BIASES, LAYOUTS


def norm(model: Architecture, width: int) -> nn.Module:
    """A norm of the architecture's kind over the last `width` elements."""
    if model.norm == "rms":
        return nn.RMSNorm(width)
    return nn.LayerNorm(
        width,
        elementwise_affine=model.norm != "layer without parameters",
        bias=model.norm == "layer",
    )


class Attention(nn.Module):
    """Causal attention of (batch, sequence, hidden) to the same shape, queries in groups if there are fewer keys."""

    def __init__(self, model: Architecture) -> None:
        super().__init__()
        queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
        self.widths, self.head_dim, self.grouped = (queries, keys, keys), model.head_dim, model.heads != model.kv_heads
        biases = BIASES[model.biases]
        outputs = {"query": queries, "key": keys, "value": keys, "query_key_value": queries + 2 * keys}
        for name in LAYOUTS[model.layout].projections:
            self.add_module(name, nn.Linear(model.hidden, outputs[name], bias="qkv" in biases))
        self.output = nn.Linear(queries, model.hidden, bias="output" in biases)
        self.per_head = model.qk_norms == "per head"
        self.query_norm = self.key_norm = None
        if model.qk_norms != "none":
            self.query_norm = norm(model, model.head_dim if self.per_head else queries)
            self.key_norm = norm(model, model.head_dim if self.per_head else keys)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = getattr(self, "query_key_value", None)
        query, key, value = joined(x).split(self.widths, -1) if joined else (self.query(x), self.key(x), self.value(x))
        if self.query_norm and not self.per_head:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key, value = (each.unflatten(-1, (-1, self.head_dim)) for each in (query, key, value))
        if self.query_norm and self.per_head:
            query, key = self.query_norm(query), self.key_norm(key)
        query, key, value = (each.transpose(1, 2) for each in (query, key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=self.grouped)
        return self.output(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Two matrices with GELU between them, or three with a SiLU gate."""

    def __init__(self, model: Architecture) -> None:
        super().__init__()
        biased = "mlp" in BIASES[model.biases]
        self.gate = nn.Linear(model.hidden, model.ffn, bias=biased) if model.gated_mlp else None
        self.up = nn.Linear(model.hidden, model.ffn, bias=biased)
        self.down = nn.Linear(model.ffn, model.hidden, bias=biased)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x) if self.gate else F.gelu(self.up(x)))


class Layer(nn.Module):
    """One layer, a unit of FSDP. recompute: keep its input alone, and compute the rest again in the backward pass."""

    def __init__(self, model: Architecture, recompute: bool) -> None:
        super().__init__()
        self.recompute = recompute
        for part in LAYOUTS[model.layout].layer:
            if part == "attention":
                self.attention = Attention(model)
            elif part == "mlp":
                self.mlp = MLP(model)
            elif int(part[-1]) <= model.norms_per_layer:
                self.add_module(part, norm(model, model.hidden))
        self.arrangement = arrangement(model)

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        """The layer of (batch, sequence, hidden) to the same shape."""
        if self.arrangement == "none":
            x = x + self.attention(x)
            return x + self.mlp(x)
        if self.arrangement == "side by side":
            return x + self.attention(self.norm_1(x)) + self.mlp(self.norm_2(x))
        inner = ("norm_1", "norm_3") if self.arrangement == "around" else ("norm_1", "norm_2")
        outer = ("norm_2", "norm_4") if self.arrangement == "around" else ("norm_1", "norm_2")
        for branch, before, after in zip((self.attention, self.mlp), inner, outer, strict=True):
            x = self._with_norms(x, branch, before, after)
        return x

    def _with_norms(self, x: torch.Tensor, branch: Callable, before: str, after: str) -> torch.Tensor:
        y = getattr(self, before)(x) if self.arrangement in ("before", "around") else x
        y = branch(y)
        y = getattr(self, after)(y) if self.arrangement in ("after", "around") else y
        return getattr(self, after)(x + y) if self.arrangement == "on the sum" else x + y

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.compute, x, use_reentrant=False) if self.recompute else self.compute(x)


class Decoder(nn.Module):
    """Token ids of (batch, sequence) to logits of (batch, sequence, vocabulary)."""

    def __init__(self, model: Architecture, recompute: bool = False) -> None:
        super().__init__()
        narrow = model.embedding_width or model.hidden
        parts: dict[str, Callable[[], nn.Module]] = {
            "embedding": lambda: nn.Embedding(model.vocabulary, narrow),
            "positions": lambda: nn.Embedding(model.learned_positions, model.hidden),
            "project_out": lambda: nn.Linear(model.hidden, narrow, bias=False),
            "project_in": lambda: nn.Linear(narrow, model.hidden, bias=False),
            "layers": lambda: nn.ModuleList(Layer(model, recompute) for _ in range(model.layers)),
            "final_norm": lambda: norm(model, model.hidden),
            "head": lambda: nn.Linear(narrow, model.vocabulary, bias=False),
        }
        there = {
            "positions": model.learned_positions > 0,
            "project_out": narrow != model.hidden,
            "project_in": narrow != model.hidden,
            "final_norm": model.final_norm,
        }
        for part in LAYOUTS[model.layout].root:
            self.add_module(part, parts[part]() if there.get(part, True) else None)
        if model.tied_embeddings:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        x = self.project_in(x) if self.project_in else x
        if self.positions:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        x = self.final_norm(x) if self.final_norm else x
        return self.head(self.project_out(x) if self.project_out else x)
