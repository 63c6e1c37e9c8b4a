"""06.hsdp: lab 04's training steps on nodes, with the groups made, and ranks that begin with weights of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from utils.checks.lab04.models import DEEP, SIZES, TIED, UNUSED, WEIGHED, Model
from utils.checks.lab04.reading import Reader, Weights
from utils.checks.lab04.training import Case, Trained, observe
from utils.checks.lab05.exam import STAGE as ON_FOUR_RANKS
from utils.checks.lab05.models import FROZEN, units
from utils.checks.lab06.places import Place, groups_of
from utils.checks.ranks import Mark

STAGE = replace(ON_FOUR_RANKS, step=7)  # on 2 ranks one tensor of all fp32 gradients is as large as 6 layers
APART = 1 / 8  # of themselves: so much larger are the weights with which rank r + 1 begins than those of rank r


@dataclass(frozen=True)
class Trial:
    """What is trained where."""

    place: Place
    case: Case

    @property
    def name(self) -> str:
        return f"{self.case.name}, on {self.place.name}"


@dataclass(frozen=True)
class Hybrid:
    """One rank. trained: as in lab 04; start: the weights that the first forward after the answer uses."""

    trained: Trained
    start: Weights


SQUARE = Place(2, 2)
FIRST = Trial(SQUARE, Case(DEEP, "SGD"))
WEIGHED_TRIAL = Trial(SQUARE, Case(WEIGHED, "small Adam", weighed=True, micro_batches=(1, 2)))
ON_THE_SQUARE = (Trial(SQUARE, Case(DEEP, "Adam")), WEIGHED_TRIAL)
ON_FOUR = (
    Trial(Place(1, 4), Case(TIED, "SGD", micro_batches=(1, 1))),
    Trial(Place(4, 1), Case(DEEP, "SGD", micro_batches=(1, 1))),
    Trial(SQUARE, Case(UNUSED, "SGD", micro_batches=(1, 1))),
    Trial(SQUARE, Case(FROZEN, "SGD", micro_batches=(1, 1))),
)
ON_SIX = (
    Trial(Place(3, 2), Case(SIZES, "SGD", micro_batches=(1, 2))),
    Trial(Place(2, 3), Case(DEEP, "momentum", micro_batches=(1, 1))),
)


def train(trial: Trial, answer: Any, mark: Mark) -> Hybrid:
    """In a rank: `answer(units, make_optimizer, shard_group, replica_group)`, then the steps of the case."""
    groups, start = groups_of(trial.place), {}

    def arguments(model: Model, built: nn.Module) -> tuple[list[nn.Module], nn.Module]:
        with torch.no_grad():
            for p in built.parameters():
                p.mul_(1 + APART * dist.get_rank())
        return units(model, built), built

    def called(given: tuple[list[nn.Module], nn.Module], make_optimizer: Any) -> Any:
        step = answer(given[0], make_optimizer, *groups)
        if callable(step) and not trial.case.weighed:
            mark("start")
            probe = trial.case.model.batches(dist.get_world_size(), 99)[dist.get_rank()][0]
            start.update(Reader(given[1]).read(lambda: given[1](probe)))
        return step

    return Hybrid(observe(trial.case, arguments, _law(trial.place), called, mark), dict(start))


def _law(place: Place) -> Any:
    """Bytes that may exist: as on the ranks of one node alone."""
    return lambda _, step, moment: STAGE.at(place.per_node, step, moment)


def groups_by_name(model: Model, built: nn.Module) -> list[list[str]]:
    """The names of the parameters of each unit that trains."""
    names = {id(p): name for name, p in built.named_parameters()}
    found = [[names[id(p)] for p in unit.parameters() if p.requires_grad] for unit in units(model, built)]
    return [group for group in found if group]


def differing(start: Sequence[Weights], wanted: Weights) -> tuple[int, str] | None:
    """The first rank, and the name of a parameter, that does not begin as it should; None if all do."""
    for rank, weights in enumerate(start):
        for name, value in weights.items():
            if name in wanted and not torch.equal(value, wanted[name]):
                return rank, name
    return None
