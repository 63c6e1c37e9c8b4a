"""04.partition: a padded flat buffer, parameters that are views of it, and a slice for each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from utils.checks.lab04.models import DEEP, SIZES, TIED, WEIGHED
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article

RANKS = (1, 2, 3, 4, 64)
Make = Callable[[], Sequence[nn.Parameter]]


def _transposed() -> list[nn.Parameter]:
    return [nn.Parameter(torch.arange(12.0).view(3, 4).t()), nn.Parameter(torch.arange(5.0))]


LISTS: dict[str, Make] = {
    "a model of four layers": lambda: list(DEEP.build().parameters()),
    "tied weights": lambda: list(TIED.build().parameters()),
    "one large and many tiny tensors": lambda: list(SIZES.build().parameters()),
    "a single number": lambda: [nn.Parameter(torch.tensor(3.0))],
    "a transposed weight": _transposed,
    "bf16 weights": lambda: list(WEIGHED.build()[0].parameters()),
}


@dataclass(frozen=True)
class Cut:
    """What one call left behind.

    returned   in words, if it was no pair of tensors
    flat       the buffer's numbers; `grows`: whether it takes part in autograd
    mine       the slice's numbers, as they were, and whether it lies in the buffer, beginning at element `begin`
    every      the distance of its numbers there
    shapes     of the parameters afterwards
    moved      whether each parameter changed as its part of the buffer was written to
    trains     whether each is still a trainable leaf
    """

    returned: str = ""
    flat: torch.Tensor | None = None
    grows: bool = False
    mine: torch.Tensor | None = None
    shared: bool = False
    begin: int = 0
    every: int = 1
    shapes: tuple[torch.Size, ...] = ()
    moved: tuple[bool, ...] = ()
    trains: bool = True


def verify(answer: Any) -> str:
    seen = run_cases(answer, {"": observe}, 1)[""][0].value
    for name, make in LISTS.items():
        for world_size in RANKS:
            for rank in sorted({0, 1 % world_size, world_size - 1}):
                try:
                    judge(make(), rank, world_size, seen[name, world_size, rank])
                except Mistake as mistake:
                    raise Mistake(f"for {name}, rank {rank} of {world_size}: {mistake}") from None
    return (
        f"on {len(LISTS)} lists of parameters and for 1, 2, 3, 4 and 64 ranks the buffer holds all numbers in order "
        "and the fewest zeros that make its slices equal; the parameters and the slice are views of it; also with a "
        "transposed weight, a single number and bf16."
    )


def observe(answer: Any, mark: Mark) -> dict[tuple[str, int, int], Cut]:
    """In a rank: every list, for every number of ranks, and for the first, second and last of these."""
    return {
        (name, world_size, rank): _cut(answer, make(), rank, world_size)
        for name, make in LISTS.items()
        for world_size in RANKS
        for rank in {0, 1 % world_size, world_size - 1}
    }


def _cut(answer: Any, parameters: Sequence[nn.Parameter], rank: int, world_size: int) -> Cut:
    returned = answer(list(parameters), rank, world_size)
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    if not pair or not all(isinstance(each, torch.Tensor) for each in returned):
        return Cut(returned="None" if returned is None else with_article(type(returned).__name__))
    flat, mine = returned
    before, slice_before = flat.detach().clone(), mine.detach().clone()
    shared = mine.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()
    shapes = tuple(p.shape for p in parameters)
    was = [p.detach().clone() for p in parameters]
    with torch.no_grad():
        flat.add_(1)
    return Cut(
        flat=before,
        grows=flat.requires_grad,
        mine=slice_before,
        shared=shared,
        begin=mine.storage_offset() - flat.storage_offset(),
        every=mine.stride()[0] if mine.dim() == 1 and len(mine) > 1 else 1,
        shapes=shapes,
        moved=tuple(torch.equal(p.detach(), w + 1) for p, w in zip(parameters, was, strict=True)),
        trains=all(p.is_leaf and p.requires_grad for p in parameters),
    )


def judge(parameters: Sequence[nn.Parameter], rank: int, world_size: int, cut: Cut) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    if cut.returned:
        raise Mistake(f"your function returns {cut.returned}; it is to return the tensors `(flat, mine)`.")
    numbers = torch.cat([p.detach().flatten() for p in parameters])
    length = -(-len(numbers) // world_size)
    _judge_buffer(cut, numbers, length, world_size)
    for p, shape in zip(parameters, cut.shapes, strict=True):
        if p.shape != shape:
            raise Mistake(f"a parameter of shape {tuple(p.shape)} has become one of shape {tuple(shape)}.")
    if not all(cut.moved):
        raise Mistake(
            "the parameters are no views of `flat`: what is written into it does not reach the model. Set each "
            "`p.data` to its part of `flat`."
            if not any(cut.moved)
            else "some parameters are no views of their part of `flat`: what is written into it does not reach them."
        )
    if cut.grows or not cut.trains:
        raise Mistake("`flat` takes part in autograd: fill it with `p.detach()`, and leave the parameters trainable.")
    _judge_slice(cut, length, rank, world_size)


def _judge_buffer(cut: Cut, numbers: torch.Tensor, length: int, world_size: int) -> None:
    flat, wanted = cut.flat, world_size * length
    if flat.dim() != 1:
        raise Mistake(f"`flat` has {flat.dim()} dimensions; it has one.")
    if flat.dtype != numbers.dtype:
        raise Mistake(f"`flat` is of type {flat.dtype}, and the parameters of {numbers.dtype}.")
    if len(flat) != wanted:
        if len(flat) == length and len(cut.mine) == wanted:
            raise Mistake("the buffer and the slice have changed places: return `(flat, mine)`.")
        if len(flat) == len(numbers):
            raise Mistake(
                f"`flat` is not padded: {world_size} does not divide its {len(flat)} numbers, so that the slices "
                "cannot be equal. Collectives on single tensors need equal ones."
            )
        raise Mistake(
            f"`flat` has {len(flat)} numbers; {len(numbers)}, and the fewest zeros that make it a multiple of "
            f"{world_size}, are {wanted}."
        )
    if flat[len(numbers) :].any():
        raise Mistake("the padding at the end of `flat` is not zero: norms and checkpoints would see it.")
    if not torch.equal(flat[: len(numbers)], numbers):
        if torch.equal(flat[: len(numbers)].sort().values, numbers.sort().values):
            raise Mistake("`flat` holds the parameters' numbers in another order: parameter by parameter, as listed.")
        raise Mistake("`flat` does not hold the numbers that the parameters had.")


def _judge_slice(cut: Cut, length: int, rank: int, world_size: int) -> None:
    mine = cut.mine
    if mine.dim() != 1 or len(mine) != length:
        raise Mistake(
            f"`mine` has {mine.numel()} numbers; each of {world_size} slices has {length}, the last one with its "
            "padding."
        )
    if not cut.shared:
        raise Mistake("`mine` is a copy: it is to be a view of `flat`, so that writing into it changes the model.")
    if cut.every != 1:
        raise Mistake(f"`mine` takes every {cut.every}th number of `flat`: a slice is contiguous, one after the other.")
    if cut.begin != rank * length:
        raise Mistake(f"`mine` begins at element {cut.begin} of `flat`; slice {rank} begins at {rank * length}.")
