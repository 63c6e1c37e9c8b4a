"""Compares what the ranks issued. gloo does not: sizes that differ give wrong numbers without an error."""

from __future__ import annotations

from collections import defaultdict

from utils.runtime.places import line_label
from utils.runtime.recorder import POINT_TO_POINT, Op
from utils.runtime.report import ranks

# Operations of which every rank must give as many bytes as the others.
_SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")


def disagreement(ops_by_rank: tuple[tuple[Op, ...], ...]) -> str | None:
    """One sentence on the first collective that the ranks of a group issued differently, or None."""
    parts: dict[tuple[float, str, int], dict[int, Op]] = defaultdict(dict)
    for rank, ops in enumerate(ops_by_rank):
        for op in ops:
            if op.kind not in POINT_TO_POINT:
                parts[(op.group, op.sequence)][rank] = op
    for (_, sequence), by_rank in sorted(parts.items(), key=lambda item: min(op.issued_at for op in item[1].values())):
        stories: dict[str, list[int]] = defaultdict(list)
        for rank, op in by_rank.items():
            stories[_story(op)].append(rank)
        if len({_signature(op) for op in by_rank.values()}) > 1:
            told = "; ".join(f"{ranks(members)} issued {story}" for story, members in stories.items())
            return f"the ranks' collective #{sequence} is not the same on all of them: {told}. The numbers are wrong."
    return None


def _signature(op: Op) -> tuple:
    return op.kind, op.bytes if op.kind in _SAME_SIZE else None, op.peer


def _story(op: Op) -> str:
    root = f" from rank {op.peer}" if op.kind == "broadcast" else f" to rank {op.peer}" if op.kind == "reduce" else ""
    return f"{op.kind} of {op.bytes} B{root}{f' at {line_label(op.line)}' if op.line else ''}"
