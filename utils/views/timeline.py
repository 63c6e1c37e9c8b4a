"""When each rank issued its collectives, and when they were complete.

Ranks stand below one another, time runs to the right. Operations of a rank that overlap lie on lanes of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from utils.theory.units import format_bytes
from utils.views.board import Board, Scene, Words, extent
from utils.views.clock import draw_clock
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, PAPER, SMALL, TITLE, ink_on, rank_colour

_LEFT, _TOP, _LANE, _GAP = 78, 62, 20, 10
_SPAN = WIDTH - _LEFT - 16  # pixels for the whole time


def timeline_picture(ops_by_rank: Sequence[Sequence[Any]], title: str = "", emulated: str = "") -> Picture:
    """The operations of a run as bars from issue to completion.

    ops_by_rank: by rank, in the order of their issue, records with `kind`, `bytes`, `issued_at` and `completed_at`
        (seconds since the run began; None for what never completed, drawn hollow to the end).
    emulated: what the recorder has made of the run, such as "emulated link, true reduce-scatter": it goes into the
        picture's title.
    The text alternative tells what was issued, not when: it is the same on every run and every kind of link.
    """
    lanes = [_lanes(ops) for ops in ops_by_rank]
    heights = [max(1, len({lane for lane, _ in rank})) * _LANE + _GAP for rank in lanes]
    board = Board(_TOP + sum(heights) + 34, WIDTH)
    heading = title or "Operations by rank"
    board.show(_scene(lanes, heights, f"{heading}, {emulated}" if emulated else heading))
    return Picture(board.figure, _words(ops_by_rank, title))


def _lanes(ops: Sequence[Any]) -> list[tuple[int, Any]]:
    """(lane, operation): the first lane that is free when the operation is issued."""
    busy_until: list[float] = []
    placed = []
    for op in sorted(ops, key=lambda op: op.issued_at):
        free = (lane for lane, end in enumerate(busy_until) if end <= op.issued_at)
        lane = next(free, len(busy_until))
        if lane == len(busy_until):
            busy_until.append(0.0)
        busy_until[lane] = float("inf") if op.completed_at is None else op.completed_at
        placed.append((lane, op))
    return placed


def _scene(lanes: list[list[tuple[int, Any]]], heights: list[int], title: str) -> Scene:
    ops = [op for rank in lanes for _, op in rank]
    first = min((op.issued_at for op in ops), default=0.0)
    last = max([first + 1e-6, *(op.completed_at or op.issued_at for op in ops)])
    if any(op.completed_at is None for op in ops):
        last += 0.08 * (last - first)
    scale = _SPAN / (last - first)
    scene = Scene()
    scene.write(_LEFT, 18, title, TITLE, align="left", bold=True)
    scene.write(_LEFT, 39, "A bar runs from issue to completion; hollow: never completed.", align="left")
    top = _TOP
    for rank, (placed, height) in enumerate(zip(lanes, heights, strict=True)):
        scene.box(8, top + 1, 60, _LANE - 3, rank_colour(rank), edge=FAINT)
        scene.write(38, top + _LANE / 2, f"rank {rank}", SMALL)
        for lane, op in placed:
            left = _LEFT + (op.issued_at - first) * scale
            end = last if op.completed_at is None else op.completed_at
            _draw_op(scene, op, left, max(2.0, (end - op.issued_at) * scale), top + lane * _LANE)
        top += height
        scene.line(_LEFT, top - _GAP / 2, _LEFT + _SPAN, top - _GAP / 2, "#DDDDDD")
    draw_clock(scene, last - first, top, _LEFT, _SPAN)
    return scene


def _draw_op(scene: Scene, op: Any, left: float, width: float, top: float) -> None:
    done = op.completed_at is not None
    fill = COMMUNICATION.colour if done else PAPER
    scene.box(left, top, width, _LANE - 2, fill, edge=INK if not done else PAPER)
    for text in (f"{op.kind}, {format_bytes(op.bytes)}", op.kind):
        word = Words(left + width / 2, top + _LANE / 2 - 1, text, SMALL, colour=ink_on(fill))
        ink_left, _, ink_right, _ = extent(word)
        if ink_right - ink_left <= width - 6:
            scene.words.append(word)
            return


def _words(ops_by_rank: Sequence[Sequence[Any]], title: str) -> str:
    ranks_by_count: dict[str, list[int]] = {}
    for rank, ops in enumerate(ops_by_rank):
        ranks_by_count.setdefault(_counted(Counter(op.kind for op in ops)), []).append(rank)
    said = "; ".join(f"{_named(ranks, len(ops_by_rank))} issued {what}" for what, ranks in ranks_by_count.items())
    open_ops = sum(op.completed_at is None for ops in ops_by_rank for op in ops)
    never = f" Never completed: {open_ops}." if open_ops else ""
    return f"{title or 'Operations by rank'}: time line of {len(ops_by_rank)} ranks; {said}.{never}"


def _named(ranks: list[int], world_size: int) -> str:
    if len(ranks) == world_size:
        return "every rank"
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _counted(count: Counter) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(count.items())) or "nothing"
