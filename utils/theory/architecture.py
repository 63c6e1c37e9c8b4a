"""A decoder's architecture: the list of its parameter tensors, from which every count follows.

The tensors stand in the order in which the Hugging Face module registers them (transformers 5.24.0), because DDP lays
its buckets along that order backwards. The names are the suite's own and the same in every family.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

from utils.theory.arguments import check_choice, check_yes_or_no, is_whole
from utils.theory.shapes import BIASES, LAYOUTS, NORMS, QK_NORMS
from utils.theory.units import shown

WIDEST = 10**9
_RANGES = {
    "hidden": (1, WIDEST),
    "layers": (1, 10_000),
    "heads": (1, WIDEST),
    "vocabulary": (1, WIDEST),
    "norms_per_layer": (0, 4),
    "learned_positions": (0, WIDEST),
}


class Tensor(NamedTuple):
    """One parameter tensor. A linear layer's weight is (outputs, inputs); Hugging Face's GPT-2 has it transposed."""

    name: str
    shape: tuple[int, ...]

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Unit:
    """What FSDP gathers at once: one layer, or the root, which holds all that lies outside the layers.

    tensors: their names are relative to the unit.
    """

    name: str
    tensors: tuple[Tensor, ...]

    @cached_property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors)


@dataclass(frozen=True)
class Architecture:
    """A decoder-only transformer. What is left out is as in Llama, and kept by `dataclasses.replace`.

    hidden: width h of the residual stream. layers: L. heads: of the queries. kv_heads: of keys and values; all heads
    if left out. head_dim: width of a head; hidden / heads if left out. ffn: width inside the MLP; if left out, 8/3 h
    rounded up to a multiple of 256 (Llama 1's rule) for a gated MLP and 4 h otherwise. vocabulary: rows V of the
    embedding. tied_embeddings: the output matrix is the embedding.
    gated_mlp: three matrices in the MLP, else two. biases: "none", "qkv", "attention" (the output too), "all" (all
    matrices of a layer). norm: "rms" and "layer without bias" have a weight, "layer" a bias too, "layer without
    parameters" nothing. norms_per_layer: 0 to 4. qk_norms: on queries and keys, "none", "per head" (shared by the
    heads) or "full width". final_norm: a norm after the last layer. learned_positions: rows of a position embedding.
    embedding_width: of an embedding that is projected to h and back (OPT-350M). layout: the order in which the
    tensors are registered and whether queries, keys and values are one tensor; a key of `shapes.LAYOUTS`.

    Raises ValueError, in one sentence, naming the field, its value and what is allowed.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    vocabulary: int = 32000
    tied_embeddings: bool = False
    gated_mlp: bool = True
    biases: str = "none"
    norm: str = "rms"
    norms_per_layer: int = 2
    qk_norms: str = "none"
    final_norm: bool = True
    learned_positions: int = 0
    embedding_width: int | None = None
    layout: str = "llama"

    def __post_init__(self) -> None:
        for field in ("tied_embeddings", "gated_mlp", "final_norm"):
            check_yes_or_no(field, getattr(self, field))
        for field, known in (("biases", BIASES), ("norm", NORMS), ("qk_norms", QK_NORMS), ("layout", LAYOUTS)):
            check_choice(field, getattr(self, field), known)
        for field, (least, most) in _RANGES.items():
            self._settle(field, getattr(self, field), least, most)
        if self.head_dim is None and self.hidden % self.heads:
            raise ValueError(
                f"heads is {self.heads}, which does not divide hidden = {self.hidden}: give a divisor, or head_dim too"
            )
        for field, left_out in (
            ("kv_heads", self.heads),
            ("head_dim", self.hidden // self.heads),
            ("ffn", 256 * math.ceil(self.hidden / 96) if self.gated_mlp else 4 * self.hidden),
        ):
            given = getattr(self, field)
            self._settle(field, left_out if given is None else given, 1, WIDEST)
        if self.embedding_width is not None:
            self._settle("embedding_width", self.embedding_width, 1, WIDEST)
            if self.embedding_width == self.hidden:
                object.__setattr__(self, "embedding_width", None)  # one way to say it, so that equal models are equal
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads is {self.kv_heads}, but each key head serves equally many of the {self.heads} heads: "
                f"give a divisor of {self.heads}"
            )

    def _settle(self, field: str, value: object, least: int, most: int) -> None:
        """Keep the value as Python's own integer; the class is frozen, so by the back door."""
        if not is_whole(value) or not least <= value <= most:
            raise ValueError(f"{field} is {shown(value)}; give a whole number from {least:,} to {most:,}")
        object.__setattr__(self, field, int(value))

    @cached_property
    def layer_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of one layer, as registered; the layers are alike."""
        return tuple(tensor for part in LAYOUTS[self.layout].layer for tensor in self._layer_part(part))

    @cached_property
    def root_tensors(self) -> tuple[Tensor, ...]:
        """The tensors outside the layers, as registered."""
        return tuple(tensor for part in LAYOUTS[self.layout].root for tensor in self._root_part(part))

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors as registered, a layer's with the name "layers.3.mlp.up.weight"; a tied matrix stands once."""
        every = []
        for part in LAYOUTS[self.layout].root:
            if part == "layers":
                for i in range(self.layers):
                    every += [Tensor(f"layers.{i}.{name}", shape) for name, shape in self.layer_tensors]
            else:
                every += self._root_part(part)
        return tuple(every)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """What FSDP gathers at once if every layer is wrapped: the root, then the layers."""
        layers = (Unit(f"layers.{i}", self.layer_tensors) for i in range(self.layers))
        return (Unit("root", self.root_tensors), *layers)

    @cached_property
    def parameters(self) -> int:
        """In all."""
        return sum(tensor.parameters for tensor in self.root_tensors) + self.layers * self.parameters_per_layer

    @cached_property
    def parameters_per_layer(self) -> int:
        return sum(tensor.parameters for tensor in self.layer_tensors)

    @property
    def embedding_parameters(self) -> int:
        """The token embedding: V rows."""
        return self.vocabulary * (self.embedding_width or self.hidden)

    @property
    def non_embedding_parameters(self) -> int:
        """Without token and position embeddings and output matrix (Kaplan et al., arXiv:2001.08361, section 2.1)."""
        tokens = (1 if self.tied_embeddings else 2) * self.embedding_parameters
        return self.parameters - tokens - self.learned_positions * self.hidden

    @cached_property
    def largest_module_parameters(self) -> int:
        """Of the module with the most parameters of its own, weight and bias: the "largest layer" of DeepSpeed's
        ZeRO-3 estimator (deepspeed/runtime/zero/stage3.py), in most models the embedding."""
        modules: Counter[str] = Counter()
        for tensor in (*self.root_tensors, *self.layer_tensors):
            modules[tensor.name.rpartition(".")[0]] += tensor.parameters
        return max(modules.values())

    def _linear(self, name: str, outputs: int, inputs: int, bias: bool) -> list[Tensor]:
        weight = Tensor(f"{name}.weight", (outputs, inputs))
        return [weight, Tensor(f"{name}.bias", (outputs,))] if bias else [weight]

    def _norm(self, name: str, width: int) -> list[Tensor]:
        return [Tensor(f"{name}.{kind}", (width,)) for kind in NORMS[self.norm]]

    def _layer_part(self, part: str) -> list[Tensor]:
        if part == "attention":
            return self._attention()
        if part == "mlp":
            biased = "mlp" in BIASES[self.biases]
            inward = [self._linear(f"mlp.{n}", self.ffn, self.hidden, biased) for n in ("gate", "up")]
            down = self._linear("mlp.down", self.hidden, self.ffn, biased)
            return [*(inward[0] if self.gated_mlp else []), *inward[1], *down]
        return self._norm(part, self.hidden) if int(part[-1]) <= self.norms_per_layer else []

    def _attention(self) -> list[Tensor]:
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        widths = {"query": queries, "key": keys, "value": keys, "query_key_value": queries + 2 * keys}
        part = []
        for name in LAYOUTS[self.layout].projections:
            part += self._linear(f"attention.{name}", widths[name], self.hidden, "qkv" in BIASES[self.biases])
        part += self._linear("attention.output", self.hidden, queries, "output" in BIASES[self.biases])
        if self.qk_norms != "none":
            per_head = self.qk_norms == "per head"
            part += self._norm("attention.query_norm", self.head_dim if per_head else queries)
            part += self._norm("attention.key_norm", self.head_dim if per_head else keys)
        return part

    def _root_part(self, part: str) -> list[Tensor]:
        narrow, projected = self.embedding_width or self.hidden, self.embedding_width is not None
        parts = {
            "embedding": [Tensor("embedding.weight", (self.vocabulary, narrow))],
            "positions": [Tensor("positions.weight", (self.learned_positions, self.hidden))],
            "project_out": [Tensor("project_out.weight", (narrow, self.hidden))],
            "project_in": [Tensor("project_in.weight", (self.hidden, narrow))],
            "final_norm": self._norm("final_norm", self.hidden),
            "head": [Tensor("head.weight", (self.vocabulary, narrow))],
        }
        there = {
            "positions": self.learned_positions > 0,
            "project_out": projected,
            "project_in": projected,
            "final_norm": self.final_norm,
            "head": not self.tied_embeddings,
        }
        return parts.get(part, []) if there.get(part, True) else []

    def summary(self) -> dict[str, str]:
        """The counts in words, for a person."""
        root = self.units[0].parameters
        return {
            "parameters": f"{self.parameters:,}",
            "per layer": f"{self.parameters_per_layer:,}",
            "token embedding": f"{self.embedding_parameters:,}{' (also the output matrix)' * self.tied_embeddings}",
            "largest module": f"{self.largest_module_parameters:,}",
            "units to wrap": f"a root of {root:,} and {self.layers:,} layers",
            "tensors": f"{len(self.root_tensors) + self.layers * len(self.layer_tensors):,}",
        }

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows))
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows.items())

    def _repr_html_(self) -> str:
        shown = ", ".join(
            f"{field.name} {getattr(self, field.name)}" for field in fields(self) if field.name in _IN_CAPTION
        )
        rows = "".join(
            f'<tr><th scope="row">{label}</th><td>{value}</td></tr>' for label, value in self.summary().items()
        )
        return f"<table><caption>{shown}</caption>{rows}</table>"


_IN_CAPTION = ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocabulary")


def check_model(model: object, name: str = "model") -> None:
    """Raise ValueError unless it is an `Architecture`."""
    if not isinstance(model, Architecture):
        raise ValueError(f'{name} is {shown(model)}; give an Architecture, such as PRESETS["Llama-2-7B"]')
