"""Small models on which a plausible mistake shows, and the data they are tried on.

Every model maps 6 features to 6. All are built from one seed, so that every rank and the single-process twin start
from the same weights, and the ranks' shares of the data differ strongly, so that gradients of two ranks never agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

FEATURES = 6
PER_RANK = 4  # samples of each rank in a batch of equal shares

Batch = tuple[torch.Tensor, torch.Tensor]  # inputs and targets, each (samples, FEATURES)


@dataclass(frozen=True)
class Trap:
    """A model with the property its name tells, for the sentence "on a model with tied weights: ..."."""

    name: str
    make: Callable[[], nn.Module]

    def build(self, seed: int = 1) -> nn.Module:
        """A fresh model; the same for the same seed, whatever was drawn before."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make()

    @property
    def frozen(self) -> frozenset[str]:
        """The names of the parameters that do not train."""
        return frozenset(name for name, p in self.build().named_parameters() if not p.requires_grad)


def shares(world_size: int, seed: int = 0, sizes: tuple[int, ...] | None = None) -> list[Batch]:
    """One batch for each rank, of `sizes` samples (default: PER_RANK each). Rank r's inputs are r + 1 times as wide."""
    generator = torch.Generator().manual_seed(1000 * world_size + seed)
    batches = []
    for rank, size in enumerate(sizes or (PER_RANK,) * world_size):
        inputs = (rank + 1) * torch.randn(size, FEATURES, generator=generator)
        batches.append((inputs, torch.randn(size, FEATURES, generator=generator)))
    return batches


def joined(batches: list[Batch]) -> Batch:
    """The whole batch that one process would see."""
    return torch.cat([inputs for inputs, _ in batches]), torch.cat([targets for _, targets in batches])


def lopsided(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean over the samples of a loss that no other can stand for: too low costs half as much as too high."""
    error = outputs - targets
    return (error.square() * torch.where(error > 0, 1.0, 0.5)).mean()


def swapped(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return lopsided(targets, outputs)


OTHER_LOSSES = {
    swapped: "the arguments of the loss are swapped: it is called as `loss_fn(outputs, targets)`.",
    nn.functional.mse_loss: "the gradients are those of the mean squared error: call the `loss_fn` that is passed in.",
}


def _two_equal_layers() -> nn.Module:
    return nn.Sequential(
        nn.Linear(FEATURES, FEATURES, bias=False), nn.Tanh(), nn.Linear(FEATURES, FEATURES, bias=False)
    )


def _tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh(), nn.Linear(FEATURES, FEATURES))
    model[2].weight = model[0].weight
    return model


def _frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, FEATURES))
    model[0].requires_grad_(False)
    return model


class _Unused(nn.Module):
    """Its forward never calls `spare`, whose gradients stay None on every rank."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(FEATURES, FEATURES)
        self.spare = nn.Linear(FEATURES, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.used(inputs)


class _Nested(nn.Module):
    """A parameter and buffers in the root itself, a layer one module deep, another three deep.

    The forward keeps a running mean of its inputs in a buffer, so that each rank's comes to differ.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(FEATURES))
        self.register_buffer("shift", torch.randn(FEATURES))
        self.register_buffer("running_mean", torch.randn(FEATURES))
        inner = nn.Sequential(nn.Tanh(), nn.Sequential(nn.Linear(FEATURES, FEATURES)))
        self.body = nn.Sequential(nn.Linear(FEATURES, FEATURES), inner)
        self.head = nn.Linear(FEATURES, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.running_mean.lerp_(inputs.mean(0), 0.1)
        return self.head(self.body(self.scale * inputs + self.shift))


class _OneLargeManyTiny(nn.Module):
    """A few thousand numbers in two tensors and nine in nine tensors, some without a dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList([torch.randn(()) if i % 2 else torch.randn(1) for i in range(9)])
        self.wide = nn.Linear(FEATURES, 401)
        self.back = nn.Linear(401, FEATURES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scale = sum((i + 1) * s for i, s in enumerate(self.scales)) / 9
        return scale * self.back(torch.tanh(self.wide(inputs)))


class _Buffered(nn.Module):
    """BatchNorm's running statistics (float and integer buffers), a buffer that is not persistent, a frozen layer,
    a transposed weight, and buffers that float32 cannot hold: a count above 2**24 and numbers in float64.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 5)
        self.norm = nn.BatchNorm1d(5)
        self.last = nn.Linear(5, FEATURES)
        self.last.weight = nn.Parameter(torch.randn(5, FEATURES).t())
        self.first.weight.requires_grad_(False)
        self.register_buffer("offset", torch.randn(5), persistent=False)  # `state_dict()` leaves it out
        self.register_buffer("samples_seen", 2**24 + 1 + 2 * torch.randint(1000, ()))  # odd: float32 holds even ones
        self.register_buffer("exact", torch.randn(3, dtype=torch.float64))
        with torch.no_grad():
            self.norm.running_mean += torch.randn(5)
            self.norm.running_var += torch.rand(5)
            self.norm.num_batches_tracked += int(torch.randint(1, 1000, ()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.norm(self.first(inputs)) + self.offset))


PLAIN = Trap("a model of two equal layers", _two_equal_layers)
TIED = Trap("a model with tied weights", _tied)
FROZEN = Trap("a model with frozen parameters", _frozen)
UNUSED = Trap("a model with a layer that its forward does not use", _Unused)
NESTED = Trap("a model of nested modules, with a parameter in the root itself", _Nested)
SIZES = Trap("a model of one large and many tiny tensors", _OneLargeManyTiny)
BUFFERS = Trap("a model with BatchNorm buffers, numbers of several types and a transposed weight", _Buffered)

GRADIENT_TRAPS = (PLAIN, TIED, FROZEN, UNUSED, NESTED, SIZES)
