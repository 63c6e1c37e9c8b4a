"""06.groups: two groups for each rank, made by all ranks in one order.

What an answer makes is noted before anything is made in earnest: groups that the ranks make in different orders are
joined by their number alone, and so hang, or join the wrong ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch.distributed import distributed_c10d

from utils.checks.lab06.places import DEADLINE, Place
from utils.checks.ranks import Mark, run_cases
from utils.checks.verdict import Mistake, with_article

PLACES = (Place(2, 2), Place(1, 4), Place(4, 1), Place(3, 2), Place(2, 3))
RAGGED = ((4, 3), (6, 4))  # ranks, ranks on a node

Call = tuple[tuple[int, ...], bool]  # the ranks of a group, and whether its members alone make it


@dataclass(frozen=True)
class Grouped:
    """One rank. returned: in words, if it was no pair; calls: of every rank, if they do not match.

    shard, replica: the ranks of the two groups.
    """

    returned: str = ""
    calls: tuple[tuple[Call, ...], ...] = ()
    shard: tuple[int, ...] = ()
    replica: tuple[int, ...] = ()


class _Noted:
    """Stands for a group that was not made."""


class _NoRanks(RuntimeError):
    """A group is to be made of nobody."""


_NONE = " `new_group` gives a group to its members alone: keep the one whose ranks this rank is among."
_NONE_OF_ONE = " A group of one rank is a group too: make it, and return it."


def verify(answer: Any) -> str:
    for ranks in (4, 6):
        places = [place for place in PLACES if place.ranks == ranks]
        uneven = [per_node for n, per_node in RAGGED if n == ranks]
        cases: dict[str, Callable[..., Any]] = {place.name: partial(observe, place) for place in places}
        seen = run_cases(answer, {**cases, **{f"{n} on a node": partial(refused, n) for n in uneven}}, ranks, DEADLINE)
        for place in places:
            try:
                judge(place, [each.value for each in seen[place.name]])
            except Mistake as mistake:
                raise Mistake(f"on {place.name}: {mistake}") from None
        for per_node in uneven:
            for each in seen[f"{per_node} on a node"]:
                judge_refusal(ranks, per_node, each.value)
    return (
        "on 2 x 2, 1 x 4, 4 x 1, 3 x 2 and 2 x 3 each rank has the group of its node and the group of those at its "
        "place on all nodes; all ranks make the same groups in the same order; nodes that cannot be filled evenly are "
        "refused in one sentence."
    )


def observe(place: Place, answer: Any, mark: Mark) -> Grouped:
    """In a rank: what would be made, and, if the ranks agree, what is."""
    mine, returned = _noted(answer, place.per_node)
    calls: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(calls, mine)
    if isinstance(returned, str):
        return Grouped(returned=returned)
    if not _match(calls):
        return Grouped(calls=tuple(calls))
    shard, replica = answer(place.per_node)
    return Grouped(shard=_ranks(shard), replica=_ranks(replica))


def refused(per_node: int, answer: Any, mark: Mark) -> str | None:
    """In a rank: the sentence of the ValueError, or None if there was none."""
    with _noting([]):
        try:
            answer(per_node)
        except ValueError as error:
            return str(error)
        except NotImplementedError:
            raise
        except Exception as error:
            return f"\n{type(error).__name__}"
    return None


def judge(place: Place, grouped: Sequence[Grouped]) -> None:
    """In the notebook: raise Mistake, naming the first thing that is wrong."""
    for each in grouped:
        if each.returned:
            raise Mistake(f"your function returns {each.returned}; it is to return `(shard_group, replica_group)`.")
    for each in grouped:
        if each.calls:
            raise Mistake(_out_of_step(each.calls))
    for rank, each in enumerate(grouped):
        wanted = place.shard_ranks(rank), place.replica_ranks(rank)
        if (each.shard, each.replica) == wanted:
            continue
        if (each.replica, each.shard) == wanted:
            raise Mistake(
                f"the groups are transposed: rank {rank}'s shard group is {list(each.shard)}, one rank of each node: "
                "every gather crosses between nodes. Shard groups are rows, replica groups are columns."
            )
        for name, got, right in (
            ("shard", each.shard, wanted[0]),
            ("replica", each.replica, wanted[1]),
        ):
            if got != right:
                raise Mistake(
                    f"rank {rank}'s {name} group is {list(got) or 'none'}, and "
                    f"{'the ranks on its node are' if name == 'shard' else 'those at its place on all nodes are'} "
                    f"{list(right)}.{'' if got else _NONE_OF_ONE if len(right) == 1 else _NONE}"
                )


def judge_refusal(ranks: int, per_node: int, said: str | None) -> None:
    """Raise Mistake unless nodes that cannot be filled evenly were refused in one sentence."""
    case = f"{ranks} ranks cannot fill nodes of {per_node}"
    if said is None:
        raise Mistake(
            f"{case}, and your function says nothing: some ranks then have no partner on a node, and wait for ever. "
            "Raise a ValueError that says so."
        )
    if said.startswith("\n"):
        raise Mistake(f"{case}: there your function raises {said.strip()}; raise a ValueError that says why.")
    if "\n" in said.strip() or str(ranks) not in said or str(per_node) not in said:
        raise Mistake(
            f"{case}: your ValueError says {said.strip()!r}; one sentence with both numbers, {ranks} and {per_node}, "
            "tells the reader what is wrong."
        )


def _noted(answer: Any, per_node: int) -> tuple[tuple[Call, ...], Any]:
    """The groups that one call would make by `new_group`, and what is wrong with what it returned, or None."""
    calls: list[Call] = []
    with _noting(calls):
        try:
            returned = answer(per_node)
        except Exception as error:
            if not calls or isinstance(error, _NoRanks):
                raise
            return tuple(calls), None  # asked a group that was not made
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        return tuple(calls), "nothing" if returned is None else with_article(type(returned).__name__)
    kinds = _Noted | dist.ProcessGroup | None
    outside = dist.GroupMember.NON_GROUP_MEMBER  # a number that torch gives to those who are in none
    other = next((each for each in returned if not isinstance(each, kinds) and each is not outside), None)
    if other is not None:
        return tuple(calls), f"{with_article(type(other).__name__)} in place of a process group (`dist.new_group`)"
    return tuple(calls), None


@contextmanager
def _noting(calls: list[Call]) -> Iterator[None]:
    """Inside, `new_group` makes nothing: its ranks are noted."""

    def new_group(ranks: Any = None, *_: Any, use_local_synchronization: bool = False, **__: Any) -> Any:
        ranks = tuple(range(dist.get_world_size()) if ranks is None else sorted(ranks))
        if not ranks:
            raise _NoRanks("a group of no ranks is made; each has at least one, and the rank itself is in its two")
        calls.append((ranks, use_local_synchronization))
        return _Noted() if dist.get_rank() in ranks else dist.GroupMember.NON_GROUP_MEMBER

    with ExitStack() as stack:
        for module in (dist, distributed_c10d):
            stack.enter_context(patch.object(module, "new_group", new_group))
        yield


def _match(calls: Sequence[Sequence[Call]]) -> bool:
    """Whether all ranks make the same groups in the same order, but for those that their members make alone."""
    by_all = [[ranks for ranks, alone in mine if not alone] for mine in calls]
    return all(mine == by_all[0] for mine in by_all)


def _out_of_step(calls: Sequence[Sequence[Call]]) -> str:
    """In words, how the ranks differ."""
    if all(rank in ranks for rank, mine in enumerate(calls) for ranks, _ in mine):
        return (
            "each rank makes only the groups that it is in. `new_group` counts: what rank 0 makes first and what "
            "another makes first become one group. Every rank makes all groups, in one order, and keeps its two."
        )
    rank, place = next(
        (rank, place)
        for rank, mine in enumerate(calls)
        for place in range(max(len(mine), len(calls[0])))
        if mine[place : place + 1] != calls[0][place : place + 1]
    )
    ours, theirs = (str(list(calls[r][place][0])) if place < len(calls[r]) else "none" for r in (0, rank))
    return (
        f"the ranks make groups in different orders: as group {place + 1} rank 0 makes {ours}, rank {rank} {theirs}. "
        "Every rank makes all groups, in one order, and keeps its two."
    )


def _ranks(group: Any) -> tuple[int, ...]:
    return tuple(sorted(dist.get_process_group_ranks(group))) if isinstance(group, dist.ProcessGroup) else ()
