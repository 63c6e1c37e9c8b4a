"""The models of lab 05, as units: modules that are gathered together, in the order of the forward."""

from __future__ import annotations

from itertools import pairwise

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
