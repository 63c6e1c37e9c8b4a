"""Models made of layers on which a plausible mistake shows, and the data they are tried on.

Each model is an `nn.Sequential` of layers. All are built from one seed, so that every rank and the single-process twin
start from the same weights; rank r's inputs are r + 1 times as wide as rank 0's, so that no two ranks' gradients agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from utils.checks.lab01.traps import FEATURES, Batch
from utils.checks.lab02.traps import laid

WIDE = 128  # features of the model that is weighed
SAMPLES = 4  # of each rank in a micro-batch


@dataclass(frozen=True)
class Model:
    """A model with the property that its name tells, for the sentence "on a model with tied weights: ..."."""

    name: str
    make: Callable[[], nn.Sequential]
    features: int = FEATURES
    dtype: torch.dtype = torch.float32
    per_layer: bool = False  # whether each bucket is one layer

    def build(self) -> nn.Sequential:
        """A fresh model, always the same."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(4)
            return self.make().to(self.dtype)

    def layers(self, model: nn.Sequential) -> list[nn.Module]:
        """Those with trainable parameters, in the order of the forward."""
        return [layer for layer in model if any(p.requires_grad for p in layer.parameters())]

    def buckets(self, model: nn.Sequential) -> list[list[nn.Parameter]]:
        """The trainable parameters in the order of backward."""
        if not self.per_layer:
            return laid(model)
        layers = reversed(self.layers(model))
        return [[p for p in reversed(list(layer.parameters())) if p.requires_grad] for layer in layers]

    def batches(self, world_size: int, seed: int) -> list[Batch]:
        """One micro-batch for each rank."""
        generator = torch.Generator().manual_seed(1000 * world_size + seed)
        made = []
        for rank in range(world_size):
            inputs = (rank + 1) / 2 * torch.randn(SAMPLES, self.features, generator=generator)
            targets = torch.randn(SAMPLES, self.features, generator=generator)
            made.append((inputs.to(self.dtype), targets.to(self.dtype)))
        return made


def _layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.Tanh())


def _deep() -> nn.Sequential:
    return nn.Sequential(_layer(FEATURES, 9), _layer(9, 12), _layer(12, 7), nn.Linear(7, FEATURES))


def _wide() -> nn.Sequential:
    return nn.Sequential(*(_layer(WIDE, WIDE) for _ in range(5)), nn.Linear(WIDE, WIDE))


def _tied() -> nn.Sequential:
    pair = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh(), nn.Linear(FEATURES, FEATURES))
    pair[2].weight = pair[0].weight
    return nn.Sequential(_layer(FEATURES, 7), _layer(7, FEATURES), pair)


def _frozen() -> nn.Sequential:
    model = nn.Sequential(_layer(FEATURES, 5), _layer(5, 5), _layer(5, 7), nn.Linear(7, FEATURES))
    model[0][0].weight.requires_grad_(False)  # of this layer only the bias trains,
    model[1].requires_grad_(False)  # and of this one nothing
    return model


class _Spare(nn.Module):
    """A layer with a part that its forward does not use; of its kind "idle" the forward uses nothing."""

    def __init__(self, idle: bool) -> None:
        super().__init__()
        self.idle = idle
        self.used = nn.Linear(FEATURES, FEATURES)
        self.spare = nn.Linear(FEATURES, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs + 0.0 if self.idle else torch.tanh(self.used(inputs))


def _unused() -> nn.Sequential:
    return nn.Sequential(_layer(FEATURES, FEATURES), _Spare(False), _Spare(True), nn.Linear(FEATURES, FEATURES))


class _Tiny(nn.Module):
    """Nine parameters of one number each, some without a dimension: it scales by 1 and their weighted mean."""

    def __init__(self) -> None:
        super().__init__()
        for i in range(9):
            self.register_parameter(f"scale{i}", nn.Parameter(0.1 * torch.randn(() if i % 2 else 1)))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * (1 + sum((i + 1) * getattr(self, f"scale{i}") for i in range(9)) / 9)


class _One(nn.Module):
    """One number: fewer than there are ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(0.1 * torch.randn(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * (1 + self.shift)


def _sizes() -> nn.Sequential:
    return nn.Sequential(_Tiny(), _One(), _layer(FEATURES, 401), nn.Linear(401, FEATURES))


DEEP = Model("a model of four layers", _deep)
TIED = Model("a model with tied weights", _tied)
FROZEN = Model("a model with frozen parameters", _frozen)
UNUSED = Model("a model with parameters that its forward does not use", _unused)
SIZES = Model("a model of one large and many tiny tensors", _sizes)
WEIGHED = Model("a model in bf16", _wide, WIDE, torch.bfloat16, per_layer=True)

TRAPS = (TIED, FROZEN, UNUSED, SIZES)
