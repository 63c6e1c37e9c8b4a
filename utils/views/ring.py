"""The ring all-reduce, one step at a time: who sends which part, whose numbers are in which, and what it has cost."""

from __future__ import annotations

import math

from utils.theory.ring import RingState, ring_states
from utils.theory.units import format_bytes
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, FAINT, INK, LABEL, PAPER, SMALL, TITLE, rank_colour

HEIGHT = 420
FEWEST, MOST = 2, 8  # ranks; of more the parts can no longer be read
_CENTRE, _RADIUS, _NODE = (172, 214), 112, 40
_GRID_LEFT, _GRID_TOP, _GRID_WIDTH, _GRID_HEIGHT = 414, 96, 400, 244
_NUMBERED = 4  # up to so many ranks each stripe has room for its number
_FOOT = 380


def ring_picture(world_size: int, step: int, total_bytes: float) -> Picture:
    """The ring after `step` of its 2 (n - 1) steps (0: before the first), all-reducing S = `total_bytes`.

    Raises ValueError for a number of ranks outside 2 to 8, or a step that does not exist.
    """
    board = Board(HEIGHT, WIDTH)
    board.show(ring_scene(world_size, step, total_bytes))
    return Picture(board.figure, ring_words(world_size, step, total_bytes))


def ring_words(world_size: int, step: int, total_bytes: float) -> str:
    """The picture in words: what moves in this step, what is complete, and the bytes sent so far."""
    state = _state(world_size, step)
    complete = _complete(state)
    parts = f"{complete} of {world_size * world_size} parts are complete sums"
    return f"{_title(state, world_size)} {_moves(state)} {parts}; {_cost(state, world_size, total_bytes)}."


def ring_scene(world_size: int, step: int, total_bytes: float) -> Scene:
    """The scene that `ring_picture` shows; arguments and errors as there."""
    state = _state(world_size, step)
    scene = Scene()
    scene.write(16, 20, _title(state, world_size), TITLE, align="left", bold=True)
    key = "A stripe: the numbers of the rank of that colour. Thick frame: arrived in this step. ✓: the complete sum."
    scene.write(16, 43, key, SMALL, align="left")
    _draw_ring(scene, state, world_size)
    _draw_grid(scene, state, world_size)
    _draw_cost(scene, state, world_size, total_bytes)
    return scene


def _state(world_size: int, step: int) -> RingState:
    if isinstance(world_size, bool) or not isinstance(world_size, int) or not FEWEST <= world_size <= MOST:
        raise ValueError(f"world_size is {world_size!r}; a picture has room for {FEWEST} to {MOST} ranks: give one")
    states = ring_states(world_size)
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(states):
        raise ValueError(f"step is {step!r}; a ring of {world_size} ranks has steps 0 to {len(states) - 1}: give one")
    return states[step]


def _title(state: RingState, n: int) -> str:
    if state.step == 0:
        return f"Before the first of {2 * (n - 1)} steps: every rank holds its own numbers."
    half = "reduce-scatter, what arrives is added" if state.adds else "all-gather, what arrives is copied"
    return f"Step {state.step} of {2 * (n - 1)}: {half}."


def _moves(state: RingState) -> str:
    if not state.transfers:
        return "Nothing moves."
    return "Moves: " + ", ".join(f"part {t.part} from {t.source} to {t.target}" for t in state.transfers) + "."


def _complete(state: RingState) -> int:
    n = len(state.held)
    return sum(len(block.origins) == n for row in state.held for block in row)


def _cost(state: RingState, n: int, total_bytes: float) -> str:
    sent = state.step / n
    return (
        f"sent by each rank so far: {state.step} of {2 * (n - 1)} parts, {sent:.2f} S of {2 * (n - 1) / n:.2f} S "
        f"({format_bytes(sent * total_bytes)})"
    )


def _place(rank: int, n: int, radius: float) -> tuple[float, float]:
    """Rank 0 on top, the others clockwise."""
    angle = 2 * math.pi * rank / n - math.pi / 2
    return _CENTRE[0] + radius * math.cos(angle), _CENTRE[1] + radius * math.sin(angle)


def _draw_ring(scene: Scene, state: RingState, n: int) -> None:
    moving = {each.source: each.part for each in state.transfers}
    for rank in range(n):
        (x0, y0), (x1, y1) = _place(rank, n, _RADIUS), _place((rank + 1) % n, n, _RADIUS)
        length = math.hypot(x1 - x0, y1 - y0)
        along_x, along_y = (x1 - x0) / length, (y1 - y0) / length
        # Two ranks have two arrows between them, so each is moved to its own right.
        aside = 14 if n == 2 else 0
        side_x, side_y = -along_y * aside, along_x * aside
        gap = 0.5 * _NODE / max(abs(along_x), abs(along_y)) + 4
        colour, width = (COMMUNICATION.colour, 3.0) if rank in moving else (FAINT, 1.2)
        start = x0 + gap * along_x + side_x, y0 + gap * along_y + side_y
        end = x1 - gap * along_x + side_x, y1 - gap * along_y + side_y
        scene.line(*start, *end, colour, width, arrow=True)
        if rank in moving:
            x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            if n == 2:
                out_x, out_y = (34 if side_x > 0 else -34), 0.0
            else:
                out = math.hypot(x - _CENTRE[0], y - _CENTRE[1])
                out_x, out_y = 34 * (x - _CENTRE[0]) / out, 16 * (y - _CENTRE[1]) / out
            scene.write(x + out_x, y + out_y, f"part {moving[rank]}", LABEL)
    for rank in range(n):
        x, y = _place(rank, n, _RADIUS)
        scene.box(x - _NODE / 2, y - _NODE / 2, _NODE, _NODE, rank_colour(rank), edge=INK)
        scene.write(x, y, str(rank), TITLE, bold=True)


def _draw_grid(scene: Scene, state: RingState, n: int) -> None:
    """Rows: ranks. Columns: parts of each rank's tensor."""
    width, height = _GRID_WIDTH / n, _GRID_HEIGHT / n
    arrived = {(each.target, each.part) for each in state.transfers}
    scene.write(_GRID_LEFT + _GRID_WIDTH / 2, _GRID_TOP - 32, "the parts of each rank's tensor", SMALL)
    for part in range(n):
        scene.write(_GRID_LEFT + (part + 0.5) * width, _GRID_TOP - 12, str(part), SMALL)
    for rank in range(n):
        top = _GRID_TOP + rank * height
        scene.write(_GRID_LEFT - 10, top + height / 2, f"rank {rank}", LABEL, align="right")
        for part in range(n):
            left = _GRID_LEFT + part * width
            origins = state.held[rank][part].origins
            _draw_part(scene, origins, n, left + 3, top + 3, width - 6, height - 6)
            if (rank, part) in arrived:
                _draw_frame(scene, left + 3, top + 3, width - 6, height - 6)


def _draw_part(
    scene: Scene, origins: tuple[int, ...], n: int, left: float, top: float, width: float, height: float
) -> None:
    """One stripe for each rank whose numbers are in it; the complete sum has a tick on paper."""
    stripe = width / n
    scene.box(left, top, width, height, PAPER, edge=FAINT)
    for origin in origins:
        scene.box(left + origin * stripe, top, stripe, height, rank_colour(origin))
        if n <= _NUMBERED and len(origins) < n:
            scene.write(left + (origin + 0.5) * stripe, top + height / 2, str(origin), SMALL)
    if len(origins) == n:
        scene.write(left + width / 2, top + height / 2, "✓", TITLE, bold=True)


def _draw_frame(scene: Scene, left: float, top: float, width: float, height: float) -> None:
    right, bottom = left + width, top + height
    for x0, y0, x1, y1 in (
        (left, top, right, top),
        (right, top, right, bottom),
        (right, bottom, left, bottom),
        (left, bottom, left, top),
    ):
        scene.line(x0, y0, x1, y1, INK, 3.0)


def _draw_cost(scene: Scene, state: RingState, n: int, total_bytes: float) -> None:
    """A bar that fills as parts are sent, divided into the two halves."""
    left, width, steps = 16.0, WIDTH - 32.0, 2 * (n - 1)
    scene.box(left, _FOOT, width, 14, PAPER, edge=FAINT)
    for step in range(state.step):
        scene.box(left + step * width / steps, _FOOT, width / steps, 14, COMMUNICATION.colour, edge=PAPER)
    scene.line(left + width / 2, _FOOT - 4, left + width / 2, _FOOT + 18, INK, 1.6)
    cost = _cost(state, n, total_bytes)
    scene.write(left, _FOOT - 14, cost[0].upper() + cost[1:], SMALL, align="left")
    scene.write(left, _FOOT + 28, "reduce-scatter", SMALL, align="left")
    scene.write(left + width / 2 + 6, _FOOT + 28, "all-gather", SMALL, align="left")
