"""The models of lab 05, as units: modules that are gathered together, in the order of the forward."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from utils.checks.lab01.traps import FEATURES
from utils.checks.lab04.models import SIZES, TIED, UNUSED, Model

# Unlike each other, so that the bytes of a collective tell which unit it is about; 2 and 4 divide each.
_WIDTHS = (32, 48, 40, 56, 44, 32)


def units(model: Model, built: nn.Sequential) -> list[nn.Module]:
    """All children with parameters, frozen ones too."""
    return [child for child in built if any(True for _ in child.parameters())]


def sizes() -> tuple[int, ...]:
    """Bytes of each unit of LIFE."""
    return tuple(sum(p.nbytes for p in unit.parameters()) for unit in LIFE.build())


def _unlike() -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(_WIDTHS)))


def _frozen() -> nn.Sequential:
    widths = (FEATURES, 3, 9, 3, FEATURES)
    layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(widths)]
    layers[0].requires_grad_(False)  # no backward ever comes here,
    layers[2].requires_grad_(False)  # and through this one it passes
    return nn.Sequential(*layers)


LIFE = Model("a model of five unlike units", _unlike, _WIDTHS[0])
FROZEN = Model("a model with frozen units", _frozen)

TRAPS = (TIED, FROZEN, UNUSED, SIZES)


class Block(nn.Module):
    """A layer with one inside, which may be a unit of its own."""

    def __init__(self, inputs: int, middle: int, outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, middle)
        self.inner = nn.Linear(middle, outputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.inner(torch.tanh(self.own(inputs))))


class Around(Block):
    """A block with nothing of its own around what is nested in it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, inputs, outputs)
        self.own = nn.Identity()


def rooted_units(model: Model, built: nn.Sequential) -> list[nn.Module]:
    """The children but the first and the last, and after each what is nested in it; the root keeps the rest."""
    found = [child for child in built if any(True for _ in child.parameters())]
    return [unit for child in found[1:-1] for unit in ((child, child.inner) if isinstance(child, Block) else (child,))]


def owned(built: nn.Module, given: list[nn.Module]) -> list[list[nn.Parameter]]:
    """What is the own of each unit, and of the root: each parameter where the innermost lies that has all its users."""
    everything = [*given, built]
    inside = [set(each.modules()) for each in everything]
    groups: list[list[nn.Parameter]] = [[] for _ in everything]
    for p in built.parameters():
        users = {m for m in built.modules() if any(q is p for q in m.parameters(recurse=False))}
        groups[min((n for n, m in enumerate(inside) if users <= m), key=lambda n: len(inside[n]))].append(p)
    return groups


def _ends_tied(first: nn.Linear, last: nn.Linear) -> tuple[nn.Linear, nn.Linear]:
    last.weight = first.weight
    return first, last


def _nested() -> nn.Sequential:
    first, last = _ends_tied(nn.Linear(32, 32, bias=False), nn.Linear(32, 32))
    layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in ((32, 48), (40, 32))]
    return nn.Sequential(first, layers[0], Block(48, 44, 40), layers[1], last)


def _across() -> nn.Sequential:
    width = FEATURES
    layers = [nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(4)]
    layers[2][0].weight = layers[1][0].weight
    return nn.Sequential(*layers)


def _idle_root() -> nn.Sequential:
    layers = UNUSED.make()
    return nn.Sequential(layers[1], layers[0], layers[3], layers[2])


def _around() -> nn.Sequential:
    width = FEATURES
    frozen = nn.Sequential(nn.Linear(5, 7), nn.Tanh()).requires_grad_(False)
    return nn.Sequential(nn.Linear(width, 3), Around(3, 5), frozen, nn.Linear(7, 3), nn.Linear(3, width))


NESTED = Model("a model with tied ends and a nested unit", _nested, 32)
ACROSS = Model("a model with a weight tied across two units", _across)
IDLE_ROOT = Model("a model whose root has parameters that its forward does not use", _idle_root)

AROUND = Model("a model with a frozen unit, and a unit that has no parameters but those of a nested one", _around)

ROOTED_TRAPS = (NESTED, ACROSS, IDLE_ROOT, AROUND)
