"""06.reduce: a unit's gradients, reduce-scattered on the node and all-reduced across, their mean over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from utils.checks.lab01.cases import on_case
from utils.checks.lab06.crossing import judge_crossing, judge_shares
from utils.checks.lab06.places import DEADLINE, Place, groups_of
from utils.checks.lab06.summands import summands
from utils.checks.ranks import Mark, Seen, run_cases
from utils.checks.verdict import Mistake, with_article

NUMBERS = 2400  # of the gradient: 1, 2, 3, 4 and 6 divide it
PLACES = (Place(2, 2), Place(1, 4), Place(4, 1), Place(3, 2), Place(2, 3))
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Part:
    """What one rank got. returned: in words, if it was no tensor; view: whether it lies in the gradient's memory."""

    returned: str = ""
    part: torch.Tensor | None = None
    view: bool = False


def gradient_of(place: Place, rank: int) -> torch.Tensor:
    """A rank's whole gradient; no two ranks' are alike, and no two slices of one."""
    generator = torch.Generator().manual_seed(100 * place.nodes + rank)
    return (rank + 1) * torch.randn(NUMBERS, generator=generator)


def verify(answer: Any) -> str:
    for ranks in (4, 6):
        places = [place for place in PLACES if place.ranks == ranks]
        cases = {place.name: partial(observe, place) for place in places}
        seen = run_cases(answer, cases, ranks, DEADLINE, true_reduce_scatter=True)
        for place in places:
            with on_case(place.name, seen[place.name], first=place == PLACES[0]):
                judge(place, seen[place.name])
    return (
        "on 2 x 2, 1 x 4, 4 x 1, 3 x 2 and 2 x 3 each rank has its slice of the mean over all ranks, within 1e-5; by "
        "the record each node sends 2 (R - 1)/R S to the others, and whole gradients stay inside."
    )


def observe(place: Place, answer: Any, mark: Mark) -> Part:
    """In a rank: one call."""
    shard, replica = groups_of(place)
    gradient = gradient_of(place, dist.get_rank())
    mark("call")
    part = answer(gradient, shard, replica)
    mark("after")
    if not isinstance(part, torch.Tensor):
        return Part("nothing" if part is None else with_article(type(part).__name__))
    same = part.untyped_storage().data_ptr() == gradient.untyped_storage().data_ptr()
    return Part(part=part.detach().clone(), view=same)


def judge(place: Place, seen: Sequence[Seen]) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    parts = []
    for each in seen:
        if each.value.returned:
            raise Mistake(f"your function returns {each.value.returned}; it is to return a tensor, this rank's slice.")
        parts.append(each.value.part)
    _judge_numbers(place, parts)
    size = 4 * NUMBERS
    by_rank = [each.after("call") for each in seen]
    judge_crossing(place, by_rank, size, place.law(size))
    judge_shares(place, by_rank, size, place.law(size))
    if any(each.value.view for each in seen):
        raise Mistake(
            "the numbers are right, but the slice is a view of `gradient`: as long as it is kept, so are all S bytes. "
            "Return a new tensor."
        )


def _judge_numbers(place: Place, parts: Sequence[torch.Tensor]) -> None:
    length = NUMBERS // place.per_node
    whole = [gradient_of(place, rank) for rank in range(place.ranks)]
    mean = torch.stack(whole).mean(0)

    def sliced(numbers: torch.Tensor, place_of: int) -> torch.Tensor:
        return numbers[place_of * length : (place_of + 1) * length]

    def all_are(wanted: Callable[[int], torch.Tensor]) -> bool:
        return all(_close(part, wanted(rank)) for rank, part in enumerate(parts))

    def own(rank: int) -> int:
        return rank % place.per_node

    if all_are(lambda rank: sliced(mean, own(rank))):
        return
    for rank, part in enumerate(parts):
        if part.numel() != length:
            raise Mistake(
                f"rank {rank} gets {part.numel()} numbers of {NUMBERS}, and the shard of a group of {place.per_node} "
                f"has {length}: reduce-scatter in the shard group."
            )
    n, g, r = place.ranks, place.per_node, place.nodes
    one = "the mean is taken over one level alone, and the other is summed"
    again = "the mean over all ranks is divided by the ranks of one level once more"
    factors = {
        g: one,
        r: one,
        1 / g: again,
        1 / r: again,
        n: "the gradients are summed over all ranks, not averaged",
        1 / n: "the gradients are averaged twice: the mean over all ranks is divided by their number once more",
    }
    for factor, words in factors.items():
        if factor != 1 and all_are(lambda rank, factor=factor: factor * sliced(mean, own(rank))):
            times = f"{factor:.1f} times too large" if factor > 1 else f"{1 / factor:.1f} times too small"
            raise Mistake(f"{words}: every number is {times}.")
    means = {
        "reduced inside the node alone: the replicas on the other nodes never hear of it, and drift apart. All-reduce "
        "the shard in the replica group.": lambda rank: place.shard_ranks(rank),
        "reduced across the nodes alone: what the others on the node have found is lost. Reduce-scatter in the shard "
        "group first.": lambda rank: place.replica_ranks(rank),
        "not reduced at all: each rank has its own gradients.": lambda rank: (rank,),
    }
    for words, members in means.items():
        for divisor in {n, g, r, 1}:

            def partly(rank: int, members: Any = members, divisor: int = divisor) -> torch.Tensor:
                return sliced(torch.stack([whole[each] for each in members(rank)]).sum(0) / divisor, own(rank))

            if all_are(partly):
                raise Mistake(f"the gradients are {words}")
    for rank, part in enumerate(parts):
        for other in range(NUMBERS // length):
            if other != own(rank) and _close(part, sliced(mean, other)):
                raise Mistake(
                    f"rank {rank} has slice {other} of the mean, and slice {own(rank)} is its own, by its place in the "
                    "shard group: reduce-scatter in the shard group, all-reduce in the replica group."
                )
    rank, part = next((r, part) for r, part in enumerate(parts) if not _close(part, sliced(mean, own(r))))
    raise Mistake(
        f"rank {rank}'s slice is not that of the mean over all {n} ranks, {1 / n:.2f} of slice {own(rank)} of each. "
        f"{summands(part.flatten(), [each.view(g, -1) for each in whole])}"
    )


def _close(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    if got.numel() != wanted.numel():
        return False
    return bool((got.flatten() - wanted).abs().max() <= TOLERANCE * max(wanted.abs().max().item(), 1e-3))
