"""Who holds which GPU and who waits for one: jobs' ranks on the left, slots as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from utils.theory.arguments import check_whole
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import FAINT, INK, LABEL, PAPER, SMALL, TITLE, rank_colour

_PITCH, _SIDE, _LEFT, _TOP = 34, 26, 170, 66


def slots_picture(states: Mapping[str, Sequence[tuple[str, int | None]]], slots: int, title: str) -> Picture:
    """A row for each rank: the slot that it holds is filled; one that waits has an empty row and says so.

    states: by job, (what a rank does, the slot's number or None) of each rank. Raises ValueError for no slots.
    """
    check_whole("slots", slots, "how many GPUs there are", most=16)
    rows = [(job, rank, *state) for job, of_ranks in states.items() for rank, state in enumerate(of_ranks)]
    board = Board(height(len(rows)), WIDTH)
    board.show(slots_scene(states, slots, title))
    told = [f"job {job}, rank {rank}: {_said(doing, slot)}" for job, rank, doing, slot in rows]
    return Picture(board.figure, f"{title}. {'; '.join(told)}.")


def slots_scene(states: Mapping[str, Sequence[tuple[str, int | None]]], slots: int, title: str) -> Scene:
    """The picture as a scene."""
    scene = Scene()
    scene.write(16, 20, title, TITLE, align="left", bold=True)
    for slot in range(slots):
        scene.write(_LEFT + slot * _PITCH + _SIDE / 2, _TOP - 14, f"{slot}", SMALL)
    scene.write(_LEFT - 12, _TOP - 14, "slot", SMALL, align="right")
    y = _TOP
    for number, (job, of_ranks) in enumerate(states.items()):
        for rank, (doing, taken) in enumerate(of_ranks):
            scene.write(_LEFT - 12, y + _SIDE / 2, f"job {job}, rank {rank}", LABEL, align="right")
            for slot in range(slots):
                filled = slot == taken and doing != "done"
                fill = rank_colour(number) if filled else PAPER
                scene.box(_LEFT + slot * _PITCH, y, _SIDE, _SIDE, fill, edge=INK if filled else FAINT)
                if filled:
                    scene.write(_LEFT + slot * _PITCH + _SIDE / 2, y + _SIDE / 2, job[:2], SMALL)
            scene.write(_LEFT + slots * _PITCH + 8, y + _SIDE / 2, _said(doing, taken), SMALL, align="left")
            y += _PITCH
    return scene


def height(rows: int) -> int:
    """Pixels of a picture of so many ranks."""
    return _TOP + rows * _PITCH + 10


def _said(doing: str, slot: int | None) -> str:
    if doing == "holds":
        return f"holds slot {slot}, waits for its job"
    return {"waits": "waits for a slot"}.get(doing, doing)
