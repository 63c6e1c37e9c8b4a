"""Who holds what under each stage of ZeRO, and the sixteen bytes that are shared out.

Widths are bytes per parameter: a state's box is as wide as its bytes, and a rank's part of it lies where it lies in the
whole. What is only outlined is held by another rank.
"""

from __future__ import annotations

from utils.theory.arguments import check_one_of
from utils.theory.memory import SHARDED, model_states
from utils.theory.recipes import PRECISION_RECIPES
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import GRADIENT, MASTER_WEIGHTS, MOMENTS, WEIGHTS, Look, draw_block
from utils.views.palette import FAINT, INK, PAPER, SMALL, TITLE, rank_colour

STAGES = (0, 1, 2, 3)
RANKS = (2, 3, 4, 8)  # with more, a part is too narrow to see
STRATEGY = ("ddp", "zero1", "zero2", "zero3")  # by stage, in theory's words
NAME = ("plain data parallelism (stage 0)", "ZeRO-1", "ZeRO-2", "ZeRO-3")
SENT = (
    "all-reduce of the gradients",
    "reduce-scatter of the gradients, all-gather of the updated weights",
    "reduce-scatter of the gradients, all-gather of the updated weights",
    "all-gather of the weights for forward and again for backward, reduce-scatter of the gradients",
)
_RECIPE = PRECISION_RECIPES["zero-paper"]
# (field of ModelStates, look, name, bytes per parameter, what it is for): Adam's two moments are two vectors.
_STATES: tuple[tuple[str, Look, str, int, str], ...] = (
    ("weights", WEIGHTS, "weights", 2, "to compute"),
    ("gradients", GRADIENT, "gradients", 2, "of backward"),
    ("master_weights", MASTER_WEIGHTS, "master weights", 4, "what the step updates"),
    ("optimizer", MOMENTS, "first moments", 4, "mean of gradients"),
    ("optimizer", MOMENTS, "second moments", 4, "mean of their squares"),
)
_LEFT, _BYTE, _GAP = 84, 40, 5  # pixels: where the first box begins, for each byte, between two states
_WIDE_BYTE = 48  # in the picture of one parameter
_TOP, _PITCH, _BAR = 112, 34, 25
_BYTES_HEIGHT = 168


def stage_picture(stage: int, world_size: int = 4) -> Picture:
    """What each of `world_size` ranks holds of the model states under a stage, 0 to 3, in the ZeRO paper's recipe.

    Raises ValueError for another stage, or a number of ranks that is not in `RANKS`.
    """
    check_one_of("stage", stage, STAGES)
    check_one_of("world_size", world_size, RANKS)
    board = Board(stage_height(world_size), WIDTH)
    board.show(stage_scene(stage, world_size))
    return Picture(board.figure, stage_words(stage, world_size))


def stage_height(world_size: int) -> int:
    """Pixels."""
    return _TOP + _PITCH * world_size + 34


def stage_words(stage: int, world_size: int) -> str:
    """The picture in words: its text alternative."""
    shared = [name for field, _, name, _, _ in _STATES if field in SHARDED[STRATEGY[stage]]]
    whole = [name for field, _, name, _, _ in _STATES if field not in SHARDED[STRATEGY[stage]]]
    parts = f"one part of {world_size} each of {_listed(shared)}" if shared else ""
    held = " and ".join(each for each in (f"all of {_listed(whole)}" if whole else "", parts) if each)
    each = _per_parameter(stage, world_size)
    return (
        f"{NAME[stage][0].upper()}{NAME[stage][1:]} on {world_size} ranks: every rank holds {held}: {each:g} B per "
        f"parameter, {world_size * each:g} on all ranks together. Sent in a step: {SENT[stage]}."
    )


def stage_scene(stage: int, world_size: int) -> Scene:
    """The scene that `stage_picture` shows."""
    scene, shared = Scene(), SHARDED[STRATEGY[stage]]
    each = _per_parameter(stage, world_size)
    title = f"{NAME[stage][0].upper()}{NAME[stage][1:]}: {each:g} B per parameter on each of {world_size} ranks"
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    note = "Widths are bytes." if not shared else "Widths are bytes. Only outlined: another rank holds it."
    scene.write(16, 39, note, SMALL, align="left")
    for (_, _, name, size, _), x in zip(_STATES, _lefts(), strict=True):
        scene.write(x + _BYTE * size / 2, _TOP - 36, name, SMALL)
        scene.write(x + _BYTE * size / 2, _TOP - 18, f"{size} B", SMALL)
    for rank in range(world_size):
        top = _TOP + _PITCH * rank
        scene.box(12, top, 60, _BAR, rank_colour(rank), edge=FAINT)
        scene.write(42, top + _BAR / 2, f"rank {rank}", SMALL)
        for (field, look, *_, size, _), x in zip(_STATES, _lefts(), strict=True):
            width = _BYTE * size
            if field in shared:
                scene.box(x, top, width, _BAR, PAPER, edge=FAINT)
                draw_block(scene, look, x + width * rank / world_size, top, width / world_size, _BAR)
            else:
                draw_block(scene, look, x, top, width, _BAR)
        scene.write(x + width + 10, top + _BAR / 2, f"{each:g} B", SMALL, align="left", bold=True)
    foot = _TOP + _PITCH * world_size + 14
    scene.write(16, foot, f"Sent in a step: {SENT[stage]}.", SMALL, align="left")
    return scene


def sixteen_bytes_picture() -> Picture:
    """One parameter's bytes of model states in the ZeRO paper's recipe, a box for each byte."""
    board = Board(_BYTES_HEIGHT, WIDTH)
    board.show(sixteen_bytes_scene())
    parts = "; ".join(f"{name} {size} B, {use}" for _, _, name, size, use in _STATES)
    return Picture(board.figure, f"One parameter costs {_RECIPE.total:g} bytes, a box for each: {parts}.")


def sixteen_bytes_scene() -> Scene:
    """The scene that `sixteen_bytes_picture` shows."""
    scene, top, height = Scene(), 78, 32
    scene.write(16, 18, f"One parameter: {_RECIPE.total:g} bytes", TITLE, align="left", bold=True)
    scene.write(16, 39, f"{_RECIPE.title}. A box is a byte.", SMALL, align="left")
    for (_, look, name, size, use), x in zip(_STATES, _lefts(left=24, byte=_WIDE_BYTE), strict=True):
        middle = x + _WIDE_BYTE * size / 2
        scene.write(middle, top - 14, name, SMALL, bold=True)
        draw_block(scene, look, x, top, _WIDE_BYTE * size, height)
        for edge in range(size + 1):
            at = x + _WIDE_BYTE * edge
            scene.line(at, top, at, top + height, PAPER if 0 < edge < size and not look.hatched else INK, 1.5)
        scene.write(middle, top + height + 16, f"{size} B, {'16' if size == 2 else '32'} bit", SMALL)
        scene.write(middle, top + height + 34, use, SMALL)
    return scene


def _lefts(left: float = _LEFT, byte: float = _BYTE) -> list[float]:
    """Where each state's box begins, in pixels."""
    lefts, x = [], float(left)
    for *_, size, _ in _STATES:
        lefts.append(x)
        x += byte * size + _GAP
    return lefts


def _per_parameter(stage: int, world_size: int) -> float:
    return model_states(1, world_size, STRATEGY[stage]).total


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
