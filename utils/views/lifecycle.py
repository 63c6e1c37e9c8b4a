"""The life of a unit's parameters: what each rank holds of every unit at one event of a step of FSDP.

Areas are bytes. Each unit has three lanes on each rank: the shard, always there; the whole copy, while it is needed or
on its way; and the shard of the gradient, once it has been reduced.
"""

from __future__ import annotations

from utils.theory.arguments import check_one_of, check_whole
from utils.theory.lifecycle import Held, Lifecycle, lifecycle
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import GRADIENT, WEIGHTS, draw_block, draw_swatch
from utils.views.lifecycle_curve import ARRIVING, GATHERED
from utils.views.palette import FAINT, PAPER, SMALL, TITLE, rank_colour

RANKS = (2, 3, 4)
UNITS = 4
HEIGHT = 382

_LEFT, _TOP, _GAP, _PITCH = 84, 106, 10, 66
_SPAN = WIDTH - _LEFT - 24
_SHARD, _WHOLE, _GRADIENT = (0, 13), (16, 22), (41, 9)  # pixels below a rank's top, and height
_KEY = (
    (WEIGHTS, "shard"),
    (GATHERED, "whole copy"),
    (ARRIVING, "gathered ahead"),
    (GRADIENT, "gradient's shard"),
)


def life(world_size: int, prefetch: bool = True) -> Lifecycle:
    """The step that the pictures show: four equal units, without a root of its own."""
    check_one_of("world_size", world_size, RANKS)
    return lifecycle([1] * UNITS, world_size, backward_prefetch=int(prefetch))


def lifecycle_picture(step: int, world_size: int = 2, prefetch: bool = True) -> Picture:
    """Event number `step` of `life(world_size, prefetch)`. Raises ValueError for a number that it does not have."""
    board = Board(HEIGHT, WIDTH)
    board.show(lifecycle_scene(step, world_size, prefetch))
    return Picture(board.figure, lifecycle_words(step, world_size, prefetch))


def lifecycle_words(step: int, world_size: int, prefetch: bool = True) -> str:
    """The picture in words."""
    law = life(world_size, prefetch)
    event = _event(law, step)
    whole, ahead, reduced = _states(event, prefetch)
    parts = [f"{_unit(n)} whole" for n in whole] + [f"{_unit(n)} gathered ahead" for n in ahead]
    held = f", beside them {' and '.join(parts)}" if parts else " and nothing else"
    gradients = f" Gradient shards of {_listed(reduced)}." if reduced else ""
    return (
        f"{_happens(event, prefetch)} Every one of {world_size} ranks holds its shards of all {UNITS} units{held}: "
        f"{_sum(event, world_size, len(whole) + len(ahead))} of all parameters.{gradients}"
    )


def lifecycle_scene(step: int, world_size: int, prefetch: bool = True) -> Scene:
    """The scene that `lifecycle_picture` shows, WIDTH by HEIGHT pixels."""
    law = life(world_size, prefetch)
    event = _event(law, step)
    whole, ahead, reduced = _states(event, prefetch)
    scene = Scene()
    held = _sum(event, world_size, len(whole) + len(ahead))
    title = f"{event.label[0].upper()}{event.label[1:]}: {held} of all parameters"
    scene.write(16, 18, title, TITLE, align="left", bold=True)
    scene.write(16, 40, _happens(event, prefetch), SMALL, align="left")
    width = (_SPAN - _GAP * (UNITS - 1)) / UNITS
    for unit in range(UNITS):
        x = _LEFT + unit * (width + _GAP)
        scene.write(x + width / 2, _TOP - 22, _unit(unit), SMALL, bold=event.unit == unit)
        for rank in range(world_size):
            top = _TOP + _PITCH * rank
            cut, part = x + width * rank / world_size, width / world_size
            for lane, look, there in ((_SHARD, WEIGHTS, True), (_GRADIENT, GRADIENT, unit in reduced)):
                scene.box(x, top + lane[0], width, lane[1], PAPER, edge=FAINT)
                draw_block(scene, look, cut, top + lane[0], part if there else 0, lane[1])
            look = GATHERED if unit in whole else ARRIVING
            scene.box(x, top + _WHOLE[0], width, _WHOLE[1], PAPER, edge=FAINT)
            draw_block(scene, look, x, top + _WHOLE[0], width if unit in whole + ahead else 0, _WHOLE[1])
    for rank in range(world_size):
        scene.box(12, _TOP + _PITCH * rank, 60, _GRADIENT[0] + _GRADIENT[1], rank_colour(rank), edge=FAINT)
        scene.write(42, _TOP + _PITCH * rank + 25, f"rank {rank}", SMALL)
    x = 16.0
    for look, name in _KEY:
        draw_swatch(scene, look, x, 60)
        scene.write(x + 20, 60, name, SMALL, align="left")
        x += 44 + 7.4 * len(name)
    return scene


def _event(law: Lifecycle, step: int) -> Held:
    check_whole("step", step, "the number of an event", least=0, most=len(law.events) - 1)
    return law.events[step]


def _states(event: Held, prefetch: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(units that are whole, that are gathered ahead, whose gradients are reduced)."""
    if event.phase == "forward":
        inside = event.unit is not None and not event.done
        return (event.unit,) if inside else (), (), ()
    if event.done:
        return (), (), tuple(range(UNITS))
    unit = UNITS - 1 if event.unit is None else event.unit
    return (unit,), (unit - 1,) if prefetch and unit else (), tuple(range(unit + 1, UNITS))


def _happens(event: Held, prefetch: bool) -> str:
    if event.unit is None:
        return {
            ("forward", False): "At rest: each rank has its shard of every unit.",
            ("forward", True): "Forward is over: all copies are free again.",
            ("backward", False): "Backward begins with the last unit, which is gathered for the second time.",
            ("backward", True): "Backward is over: shards of parameters, shards of gradients. Now the optimizer steps.",
        }[event.phase, event.done]
    name = f"unit {event.unit}"
    if event.phase == "forward":
        return f"{name.capitalize()} has computed, and its copy is freed." if event.done else (
            f"An all-gather has made {name} whole; it computes its forward."
        )  # fmt: skip
    more = f"; {_unit(event.unit - 1)} is gathered ahead" if prefetch and event.unit else ""
    after = f" The gradients of {_unit(event.unit + 1)} were reduce-scattered." if event.unit < UNITS - 1 else ""
    return f"{name.capitalize()} is whole again and computes its backward{more}.{after}"


def _sum(event: Held, world_size: int, copies: int) -> str:
    """ "1/2 + 1/4 = 0.75"."""
    copy = {0: "", 1: f" + 1/{UNITS}", 2: f" + 2/{UNITS}"}[copies]
    share = event.bytes / (4 * UNITS)
    return f"1/{world_size}{copy}{f' = {share:.3g}' if copies else ''}"


def _unit(number: int) -> str:
    return f"unit {number}"


def _listed(numbers: tuple[int, ...]) -> str:
    names = [_unit(n) for n in numbers]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
