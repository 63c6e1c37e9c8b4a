"""Models whose gradients become ready in telling orders, and the buckets that the checks of this lab lay for them.

Every model maps 6 features to 6, as in lab 01, and is tried on lab 01's data: rank r's inputs are r + 1 times as wide
as rank 0's, so that a model can tell ranks apart by what it is given.
"""

from __future__ import annotations

import torch
from torch import nn

from utils.checks.lab01.traps import FEATURES, FROZEN, SIZES, Trap
from utils.theory.buckets import ddp_buckets

Buckets = list[list[nn.Parameter]]

WIDE = 1.0  # mean size of an input: rank 0's are narrower, the other ranks' wider


def _deep() -> nn.Module:
    return nn.Sequential(
        nn.Linear(FEATURES, 9), nn.Tanh(), nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 7), nn.Tanh(), nn.Linear(7, 6)
    )


def _deep_tied() -> nn.Module:
    """Four layers of which the first and the last share their weight: its gradient is ready last of all."""
    sizes = ((FEATURES, FEATURES), (FEATURES, 8), (8, FEATURES), (FEATURES, FEATURES))
    first, second, third, last = (nn.Linear(*size) for size in sizes)
    last.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), third, nn.Tanh(), last)


class _TwoWays(nn.Module):
    """Two branches, of which rank 0 computes one first and the other ranks the other one.

    So the ranks' gradients become ready in different orders.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(FEATURES, 11), nn.Tanh(), nn.Linear(11, FEATURES))
        self.right = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, FEATURES))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.abs().mean() > WIDE:
            of_right = self.right(inputs)
            return self.left(inputs) + of_right
        return self.left(inputs) + self.right(inputs)


class _Skips(nn.Module):
    """A chain whose layer `spare` nobody uses (`uses_spare` "never"), or all ranks but rank 0 ("wide")."""

    def __init__(self, uses_spare: str) -> None:
        super().__init__()
        self.uses_spare = uses_spare
        self.first = nn.Linear(FEATURES, 9)
        self.second = nn.Linear(9, FEATURES)
        self.spare = nn.Linear(FEATURES, FEATURES)
        self.third = nn.Linear(FEATURES, 8)
        self.last = nn.Linear(8, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.second(torch.tanh(self.first(inputs)))
        if self.uses_spare == "always" or (self.uses_spare == "wide" and inputs.abs().mean() > WIDE):
            hidden = hidden + self.spare(hidden)
        return self.last(torch.tanh(self.third(hidden)))


DEEP = Trap("a model of four layers", _deep)
DEEP_TIED = Trap("a model with tied weights", _deep_tied)
TWO_WAYS = Trap("a model whose gradients become ready in another order on each rank", _TwoWays)
NEVER_USED = Trap("a model with a layer that no rank uses", lambda: _Skips("never"))
SOMETIMES_USED = Trap("a model with a layer that rank 0 does not use", lambda: _Skips("wide"))

OVERLAP_TRAPS = (DEEP, DEEP_TIED, FROZEN, SIZES, TWO_WAYS)


def laid(model: nn.Module, parts: int = 3) -> Buckets:
    """The trainable parameters in reverse order, in buckets that close at a `parts`-th of all gradients."""
    parameters = [p for p in reversed(list(model.parameters())) if p.requires_grad]
    sizes = [size_of(p) for p in parameters]
    return [[parameters[i] for i in bucket] for bucket in ddp_buckets(sizes, bucket_cap_bytes=sum(sizes) // parts)]


def size_of(parameter: torch.Tensor) -> int:
    """Bytes of its gradient."""
    return parameter.numel() * parameter.element_size()
