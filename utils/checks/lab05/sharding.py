"""05.shard: a flat buffer without memory, of which the parameters are views, and an own copy of one slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from utils.checks.lab04.partitioning import LISTS
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article
from utils.runtime.held import Held

RANKS = (1, 2, 3, 4, 64)
Place = tuple[str, int, int]  # name of the list, rank, world_size


@dataclass(frozen=True)
class Cut:
    """What one call left behind.

    returned   in words, if it was no pair of tensors
    length     numbers of the buffer; -1 if it has not one dimension
    held       bytes of all tensors that exist afterwards, and `flat_held`: under the buffer
    mine       the slice as it was
    grows      whether buffer or slice takes part in autograd
    shapes     of the parameters afterwards, and whether each is a trainable leaf still
    filled     the numbers that each parameter shows when the buffer is given memory, and filled with 0, 1, 2, …
    """

    returned: str = ""
    length: int = 0
    held: int = 0
    flat_held: int = 0
    mine: torch.Tensor | None = None
    grows: bool = False
    shapes: tuple[torch.Size, ...] = ()
    trains: bool = True
    filled: tuple[torch.Tensor, ...] = ()


def verify(answer: Any) -> str:
    seen = run_cases(answer, {"": observe}, 1)[""][0].value
    for (name, rank, world_size), cut in seen.items():
        try:
            judge(LISTS[name](), rank, world_size, cut)
        except Mistake as mistake:
            raise Mistake(f"for {name}, rank {rank} of {world_size}: {mistake}") from None
    return (
        f"on {len(LISTS)} lists of parameters and for 1, 2, 3, 4 and 64 ranks this rank's shard is all that is left in "
        "memory; the parameters show what is gathered into the buffer; also with a transposed weight, a single number "
        "and bf16."
    )


def observe(answer: Any, mark: Mark) -> dict[Place, Cut]:
    """In a rank: every list, for the first, second and last of so many ranks."""
    places = [(n, r, w) for n in LISTS for w in RANKS for r in sorted({0, 1 % w, w - 1})]
    return {place: _cut(answer, *place) for place in places}


def _cut(answer: Any, name: str, rank: int, world_size: int) -> Cut:
    parameters = list(LISTS[name]())
    with Held(parameters) as held:
        returned = answer(list(parameters), rank, world_size)
        pair = isinstance(returned, tuple | list) and len(returned) == 2
        if not pair or not all(isinstance(each, torch.Tensor) for each in returned):
            return Cut(returned="None" if returned is None else with_article(type(returned).__name__))
        flat, mine = returned
        left = held.bytes
    flat_held = flat.untyped_storage().nbytes()
    slice_before = mine.detach().clone() if mine.untyped_storage().nbytes() >= mine.nbytes else None
    filled: tuple[torch.Tensor, ...] = ()
    if flat.dim() == 1:
        flat.untyped_storage().resize_(flat.nbytes)
        with torch.no_grad():
            flat.copy_(torch.arange(len(flat)) % 199)  # exact in bf16
        full = [p.untyped_storage().nbytes() >= p.nbytes for p in parameters]
        filled = tuple(p.detach().clone() if f else p.new_zeros(0) for p, f in zip(parameters, full, strict=True))
    return Cut(
        length=len(flat) if flat.dim() == 1 else -1,
        held=left,
        flat_held=flat_held,
        mine=slice_before,
        grows=flat.requires_grad or mine.requires_grad,
        shapes=tuple(p.shape for p in parameters),
        trains=all(p.is_leaf and p.requires_grad for p in parameters),
        filled=filled,
    )


def judge(parameters: Sequence[nn.Parameter], rank: int, world_size: int, cut: Cut) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    if cut.returned:
        raise Mistake(f"your function returns {cut.returned}; it is to return the tensors `(flat, mine)`.")
    numbers = torch.cat([p.detach().flatten() for p in parameters])
    length = -(-len(numbers) // world_size)
    if cut.length != world_size * length:
        raise Mistake(
            f"`flat` has {cut.length} numbers; {len(numbers)}, and the fewest zeros that make it a multiple of "
            f"{world_size}, are {world_size * length}."
            if cut.length >= 0
            else "`flat` has more than one dimension; it has one."
        )
    if cut.flat_held:
        raise Mistake(
            f"`flat` still has {cut.flat_held} B of memory: end with `flat.untyped_storage().resize_(0)`, after the "
            "slice is copied."
        )
    _judge_slice(numbers, length, rank, world_size, cut)
    for p, shape in zip(parameters, cut.shapes, strict=True):
        if p.shape != shape:
            raise Mistake(f"a parameter of shape {tuple(p.shape)} has become one of shape {tuple(shape)}.")
    places = (torch.arange(world_size * length) % 199).to(numbers.dtype)[: len(numbers)]
    parts = places.split([p.numel() for p in parameters])
    for p, part, filled in zip(parameters, parts, cut.filled, strict=True):
        if filled.shape != p.shape or not torch.equal(filled.flatten(), part):
            raise Mistake(
                "the parameters do not show what is gathered into `flat`: set each `p.data` to its part of `flat`, in "
                "order and in its own shape."
            )
    if cut.grows or not cut.trains:
        raise Mistake("`flat` or the shard takes part in autograd: fill it with `p.detach()`; parameters stay leaves.")
    if cut.held > length * numbers.element_size():
        raise Mistake(
            f"{cut.held} B are left in memory, and the shard has {length * numbers.element_size()} B: what else keeps "
            "the whole numbers? A view keeps all memory of what it is a view of."
        )


def _judge_slice(numbers: torch.Tensor, length: int, rank: int, world_size: int, cut: Cut) -> None:
    if cut.mine is None:
        raise Mistake("`mine` has lost its memory with `flat`: it is a view of it. Keep a copy, `.clone()`.")
    if cut.mine.dtype != numbers.dtype:
        raise Mistake(f"`mine` is of type {cut.mine.dtype}, and the parameters of {numbers.dtype}.")
    padded = numbers.new_zeros(world_size * length)
    padded[: len(numbers)] = numbers
    wanted = padded[rank * length : (rank + 1) * length]
    if cut.mine.shape != wanted.shape:
        raise Mistake(f"`mine` has {cut.mine.numel()} numbers; each of {world_size} shards has {length}.")
    if not torch.equal(cut.mine, wanted):
        raise Mistake(
            f"`mine` is not slice {rank} of all numbers, followed by zeros: elements {rank * length} to "
            f"{(rank + 1) * length - 1}."
        )
