"""Compares what ranks issue, at the moment of issue. gloo does not: with sizes that differ it gives wrong numbers.

Every group has a small table in a file that all its ranks map: one slot for each rank and collective, written before
the collective is passed on. The rank that comes second sees what the first wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from utils.runtime.shared import shared_numbers
from utils.theory.traffic import KINDS

if TYPE_CHECKING:
    from utils.runtime.recorder import Group

SLOTS = 1024  # collectives that a rank may be ahead of another before old entries are written over
_FIELDS = 5  # sequence, kind, bytes, root, type of the numbers
# Operations of which every rank must give as many bytes as the others.
_SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")
# Operations that compute, for which the bits of one type mean nothing in another.
_SAME_TYPE = ("all_reduce", "reduce", "reduce_scatter")
# By their place in the table; 0 is any other type, or none.
_TYPES = ("", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


class RanksDisagree(RuntimeError):
    """Raised in the rank that issues something else than another rank issued in the same place."""


class IssueTables:
    """One table for each group that this rank belongs to."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tables: dict[tuple[str, tuple[int, ...]], memoryview] = {}

    def agree(self, kind: str, total_bytes: int, group: Group, sequence: int, root: int, dtype: str = "") -> None:
        """Enter a collective. Raises RanksDisagree if another rank's entry with this number is a different one."""
        table = self._table(group)
        numbers = _TYPES.index(dtype) if kind in _SAME_TYPE and dtype in _TYPES else 0
        mine = (sequence, KINDS.index(kind), total_bytes if kind in _SAME_SIZE else 0, root, numbers)
        me = _offset(group.me, sequence)
        table[me] = 0  # what stood here is void; an entry counts once its sequence is there, which comes last
        for field in (1, 2, 3, 4, 0):
            table[me + field] = mine[field]
        for position, other in enumerate(group.ranks):
            at = _offset(position, sequence)
            theirs = tuple(table[at : at + _FIELDS])
            # Compared only if it is of this collective, and still was after it was read.
            if theirs[0] == sequence == table[at] and theirs != mine:
                issuing = group.ranks[group.me]
                raise RanksDisagree(
                    f"rank {issuing} issues {_story(mine, theirs)} as collective #{sequence} of its group, where rank "
                    f"{other} issued {_story(theirs, mine)}. All ranks of a group must issue the same collectives in "
                    "the same order."
                )

    def _table(self, group: Group) -> memoryview:
        key = (group.name, group.ranks)
        if key not in self._tables:
            count = _FIELDS * SLOTS * len(group.ranks)
            self._tables[key] = shared_numbers(self._folder, "issued", key, count, "q")
        return self._tables[key]


def _offset(position: int, sequence: int) -> int:
    return (position * SLOTS + sequence % SLOTS) * _FIELDS


def _story(entry: tuple[int, ...], other: tuple[int, ...]) -> str:
    _, kind, total_bytes, root, numbers = entry
    size = f" of {total_bytes} B" if total_bytes else ""
    towards = f" with root {root}" if root >= 0 else ""
    # Told only where it is what differs; of other kinds of collective it is not known.
    typed = f" in {_TYPES[numbers]}" if numbers and other[4] not in (0, numbers) else ""
    return f"{KINDS[kind]}{size}{typed}{towards}"
