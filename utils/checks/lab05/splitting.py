"""05.split: which unit, or the root, a parameter belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from utils.checks.lab05.models import ACROSS, AROUND, NESTED, Block, owned, rooted_units
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article

Case = tuple[nn.Module, list[nn.Module]]


class _WithScale(nn.Module):
    """Two units, and in the root a layer and a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        self.head = nn.Linear(3, 2)


def _plain() -> Case:
    model = _WithScale()
    return model, list(model.layers)


def _nested() -> Case:
    model = NESTED.build()
    return model, rooted_units(NESTED, model)


def _inner_first() -> Case:
    model, units = _nested()
    return model, units[::-1]


def _across() -> Case:
    model = ACROSS.build()
    return model, rooted_units(ACROSS, model)


def _tied_inside() -> Case:
    model = nn.Sequential(Block(4, 4, 4), nn.Linear(4, 4))
    model[0].inner.weight = model[0].own.weight
    return model, [model[0], model[1]]


def _tied_to_the_nested() -> Case:
    model = nn.Sequential(nn.Sequential(Block(4, 4, 4), nn.Linear(4, 4)), nn.Linear(4, 4))
    model[0][1].weight = model[0][0].inner.weight
    return model, [model[0], model[0][0], model[0][0].inner]


def _around() -> Case:
    model = AROUND.build()
    return model, rooted_units(AROUND, model)


CASES: dict[str, Callable[[], Case]] = {
    "a root with a layer and a number of its own": _plain,
    "tied ends and a nested unit": _nested,
    "the nested unit listed first": _inner_first,
    "a weight tied across two units": _across,
    "a unit that has no parameters but those of a nested one": _around,
    "a weight tied inside a unit": _tied_inside,
    "units three deep, a weight tied from the innermost to the outermost": _tied_to_the_nested,
}


@dataclass(frozen=True)
class Split:
    """What one call gave. returned: in words, if it was no list of lists of parameters; names: of each group."""

    returned: str = ""
    names: tuple[tuple[str, ...], ...] = ()


def verify(answer: Any) -> str:
    seen = run_cases(answer, {"": observe}, 1)[""][0].value
    for name, split in seen.items():
        try:
            judge(*CASES[name](), split)
        except Mistake as mistake:
            raise Mistake(f"with {name}: {mistake}") from None
    return (
        f"on {len(CASES)} models each parameter is in one group: that of the innermost unit that has all its users, "
        "or the root's; also nested three deep, tied inside a unit and across two, in any order of the units."
    )


def observe(answer: Any, mark: Mark) -> dict[str, Split]:
    """In a rank: every case."""
    return {name: _called(answer, *make()) for name, make in CASES.items()}


def _called(answer: Any, model: nn.Module, units: list[nn.Module]) -> Split:
    known = {id(p): name for name, p in model.named_parameters()}
    returned = answer(model, list(units))
    if not isinstance(returned, list | tuple):
        return Split("nothing" if returned is None else with_article(type(returned).__name__))
    groups = [list(group) if isinstance(group, list | tuple | set) else None for group in returned]
    if any(group is None or not all(isinstance(p, nn.Parameter) for p in group) for group in groups):
        return Split("a list of other things than lists of parameters")
    return Split(names=tuple(tuple(known.get(id(p), "another") for p in group) for group in groups))


def judge(model: nn.Module, units: list[nn.Module], split: Split) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    if split.returned:
        raise Mistake(f"your function returns {split.returned}; it is to return a list of lists of parameters.")
    if len(split.names) != len(units) + 1:
        raise Mistake(
            f"there are {len(split.names)} groups; {len(units)} units have one each, in their order, and the root has "
            "the last one, also where it is empty."
        )
    names = {id(p): name for name, p in model.named_parameters()}
    places = dict(model.named_modules(remove_duplicate=False))
    words = [f"`{next(name for name, m in places.items() if m is unit)}`" for unit in units] + ["the root"]
    wanted = {names[id(p)]: place for place, group in enumerate(owned(model, units)) for p in group}
    users = {
        name: [place for place, m in model.named_modules() if any(id(q) == i for q in m.parameters(recurse=False))]
        for i, name in names.items()
    }
    for name, place in wanted.items():
        found = [i for i, group in enumerate(split.names) for each in group if each == name]
        if not found:
            raise Mistake(f"`{name}` is in no group; it belongs to {words[place]}.")
        tied = len(users[name]) > 1
        if len(found) > 1:
            why = (
                f"It is one weight with {len(users[name])} users, {' and '.join(f'`{u}`' for u in users[name])}"
                if tied
                else "A nested unit's parameters are its own, and no more those of the unit around it"
            )
            raise Mistake(
                f"`{name}` is in {len(found)} groups, those of {' and '.join(words[i] for i in found)}: it would be "
                f"sharded twice. {why}; it belongs to {words[place]}."
            )
        if found != [place]:
            why = (
                f"its users, {' and '.join(f'`{u}`' for u in users[name])}, must all lie inside"
                if tied
                else "the innermost unit that has it owns it"
            )
            raise Mistake(f"`{name}` is in the group of {words[found[0]]}, and belongs to {words[place]}: {why}.")
    others = [name for group in split.names for name in group if name not in wanted]
    if others:
        raise Mistake(f"there are {len(others)} parameters in the groups that are not the model's.")
