"""One step of plain data parallelism as a sequence: who does what when, and when ranks talk to each other."""

from __future__ import annotations

from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import (
    COMMUNICATION,
    COMPUTE,
    FAINT,
    GRADIENTS,
    INK,
    LABEL,
    OPTIMIZER_STATE,
    PAPER,
    PARAMETERS,
    SMALL,
    TITLE,
    ink_on,
    rank_colour,
)

FEWEST_RANKS, MOST_RANKS = 2, 6
_LEFT, _TOP, _ROW, _BAR = 70, 104, 58, 26

# What a rank does, from left to right: pixels of width, colour.
_BATCH, _FORWARD, _BACKWARD, _STEP = 96, 150, 300, 108
_GAP = 8
_AT_FORWARD = _LEFT + _BATCH + _GAP
_AT_BACKWARD = _AT_FORWARD + _FORWARD + _GAP
_AT_STEP = _AT_BACKWARD + _BACKWARD + 46
_BUCKETS = 3  # all-reduces drawn in the backward pass


def step_picture(world_size: int = 3) -> Picture:
    """The step on `world_size` ranks, 2 to 6: shards in, forward alone, all-reduces during backward, the same step.

    Widths are not to scale. Raises ValueError for more or fewer ranks than can be drawn.
    """
    board = Board(_height(world_size), WIDTH)
    board.show(step_scene(world_size))
    return Picture(board.figure, step_words(world_size))


def step_words(world_size: int) -> str:
    """The picture in words: its text alternative."""
    _check(world_size)
    return (
        f"One step on {world_size} ranks, from left to right. Each rank takes its own shard of the batch. Forward: no "
        "communication. Backward: as soon as some gradients are there, an all-reduce averages them over all ranks, "
        "while backward goes on. Step: no communication; every rank makes the same change to the same weights."
    )


def step_scene(world_size: int) -> Scene:
    """The scene that `step_picture` shows; errors as there."""
    _check(world_size)
    scene = Scene()
    scene.write(
        8, 18, "One step of data parallelism (time from left to right, not to scale)", TITLE, align="left", bold=True
    )
    _draw_headings(scene)
    foot = _TOP + world_size * _ROW
    _draw_all_reduces(scene, foot)
    for rank in range(world_size):
        _draw_rank(scene, rank, world_size, _TOP + rank * _ROW)
    _draw_key(scene, foot + 14)
    return scene


def _draw_headings(scene: Scene) -> None:
    for left, width, name, says in (
        (_LEFT, _BATCH, "batch", "one shard each"),
        (_AT_FORWARD, _FORWARD, "forward", "no communication"),
        (_AT_BACKWARD, _BACKWARD, "backward", "gradients are averaged meanwhile"),
        (_AT_STEP, _STEP, "step", "no communication"),
    ):
        scene.write(left + width / 2, 52, name, LABEL, bold=True)
        scene.write(left + width / 2, 72, says, SMALL)
        scene.line(left, 86, left + width, 86, FAINT)


def _draw_rank(scene: Scene, rank: int, world_size: int, top: float) -> None:
    scene.box(8, top, 54, _BAR, rank_colour(rank), edge=FAINT)
    scene.write(35, top + _BAR / 2, f"rank {rank}", SMALL)
    # The whole batch in outline, this rank's shard of it filled.
    scene.box(_LEFT, top, _BATCH, _BAR, PAPER, edge=FAINT)
    share = _BATCH / world_size
    scene.box(_LEFT + rank * share, top, share, _BAR, rank_colour(rank), edge=INK)
    for left, width in ((_AT_FORWARD, _FORWARD), (_AT_BACKWARD, _BACKWARD)):
        scene.box(left, top, width, _BAR, COMPUTE.colour)
    scene.write(_AT_FORWARD + _FORWARD / 2, top + _BAR / 2, "own shard", SMALL, colour=ink_on(COMPUTE.colour))
    for bucket in range(_BUCKETS):
        # The last layers' gradients are there first.
        x = _AT_BACKWARD + (bucket + 1) * _BACKWARD / _BUCKETS
        scene.box(x - 14, top, 14, _BAR, GRADIENTS.colour)
        scene.box(x, top + _BAR + 4, 40, 12, COMMUNICATION.colour)
    scene.box(_AT_STEP, top, 50, _BAR, OPTIMIZER_STATE.colour)
    scene.line(_AT_STEP + 50, top + _BAR / 2, _AT_STEP + _STEP - 44, top + _BAR / 2, INK, 1.2, arrow=True)
    scene.box(_AT_STEP + _STEP - 42, top, 42, _BAR, PARAMETERS.colour)
    scene.write(_AT_STEP + _STEP - 21, top + _BAR / 2, "same", SMALL, colour=ink_on(PARAMETERS.colour))


def _draw_all_reduces(scene: Scene, foot: float) -> None:
    """A band through all ranks for each all-reduce: nobody is done before all are."""
    for bucket in range(_BUCKETS):
        x = _AT_BACKWARD + (bucket + 1) * _BACKWARD / _BUCKETS
        for edge in (x, x + 40):
            scene.line(edge, _TOP - 8, edge, foot - 8, COMMUNICATION.colour, 1.4)


def _draw_key(scene: Scene, y: float) -> None:
    x = float(_LEFT)
    for colour, name, width in (
        (COMPUTE.colour, "compute", 92),
        (GRADIENTS.colour, "gradients of some layers are there", 246),
        (COMMUNICATION.colour, "all-reduce", 100),
        (OPTIMIZER_STATE.colour, "optimizer", 96),
        (PARAMETERS.colour, "weights", 80),
    ):
        scene.box(x, y - 6, 14, 12, colour)
        scene.write(x + 20, y, name, SMALL, align="left")
        x += width + 20


def _height(world_size: int) -> int:
    _check(world_size)
    return _TOP + world_size * _ROW + 34


def _check(world_size: int) -> None:
    if isinstance(world_size, bool) or not isinstance(world_size, int) or not FEWEST_RANKS <= world_size <= MOST_RANKS:
        raise ValueError(
            f"world_size is {world_size!r}; the picture has room for {FEWEST_RANKS} to {MOST_RANKS} ranks: choose one "
            "of these"
        )
