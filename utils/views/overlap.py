"""A step of DDP as one time line: forward, backward, the buckets' all-reduces, what is exposed; and what they hold."""

from __future__ import annotations

from utils.theory.ddp_step import DdpStep
from utils.theory.events import Event
from utils.theory.units import format_bytes
from utils.views.bars import Bar, Frame, draw_bars, gb
from utils.views.board import Scene
from utils.views.clock import draw_clock
from utils.views.figure import WIDTH
from utils.views.kinds import GRADIENT, Look, draw_swatch
from utils.views.palette import COMMUNICATION, COMPUTE, PAPER, SMALL, TITLE, paler

HEIGHT = 300

_LEFT, _LANE, _TOP = 96, 24, 62
_SPAN = WIDTH - _LEFT - 24
_BUCKET = Look("buckets", COMMUNICATION.colour)
_MEMORY = _TOP + 4 * _LANE + 66


def overlap_scene(found: DdpStep, views: bool, title: str) -> Scene:
    """views: whether the gradients are views of the buckets. WIDTH by HEIGHT pixels."""
    scene = Scene()
    scene.write(8, 18, title, TITLE, align="left", bold=True)
    _draw_key(scene)
    events = found.step.timeline.events
    scale = _SPAN / found.step.seconds
    for row, name in enumerate(("forward", "backward", "all-reduces", "exposed")):
        scene.write(_LEFT - 8, _TOP + row * _LANE + _LANE / 2, name, SMALL, align="right")
    for row, kind in enumerate(("forward", "backward")):
        mine = [event for event in events if event.name.startswith(kind)]
        begin, end = min(event.start for event in mine), max(event.end for event in mine)
        scene.box(_LEFT + begin * scale, _TOP + row * _LANE + 2, (end - begin) * scale, _LANE - 4, COMPUTE.colour)
    for number, event in enumerate(sorted(_collectives(events), key=lambda event: event.start)):
        colour = COMMUNICATION.colour if number % 2 == 0 else paler(COMMUNICATION.colour, 0.6)
        width = (event.end - event.start) * scale
        scene.box(_LEFT + event.start * scale, _TOP + 2 * _LANE + 2, width, _LANE - 4, colour)
    for begin, end in found.step.timeline.exposed_spans:
        width = max(1.0, (end - begin) * scale)
        scene.box(
            _LEFT + begin * scale, _TOP + 3 * _LANE + 2, width, _LANE - 4, PAPER, COMMUNICATION.colour, hatched=True
        )
    draw_clock(scene, found.step.seconds, _TOP + 4 * _LANE + 4, _LEFT, _SPAN)
    _draw_memory(scene, found, views)
    return scene


def overlap_words(found: DdpStep, views: bool, who: str) -> str:
    """The picture in words. who: model, ranks and link, such as "Llama-2-7B on 64 ranks"."""
    step, sizes = found.step, found.buckets
    smallest, largest = min(sizes), max(sizes)
    spread = format_bytes(largest) if smallest == largest else f"{format_bytes(smallest)} to {format_bytes(largest)}"
    count = f"{len(sizes)} bucket{'s' if len(sizes) > 1 else ''} of {spread}"
    beside = "gradients are views of the buckets" if views else "gradients lie beside the buckets"
    hidden = f"{100 * found.hidden:.0f}% of it hidden" if step.communication else "none"
    return (
        f"{who}: {count}. A step takes {_time(step.seconds)}: compute {_time(step.compute)}, communication "
        f"{_time(step.communication)}, {hidden}, {_time(step.exposed)} exposed; without any overlap it would be "
        f"{_time(step.compute + step.communication)}. The law in one line says {_time(found.law.seconds)}. "
        f"{beside[0].upper()}{beside[1:]}: together they hold {gb(found.held(views))}."
    )


def _draw_key(scene: Scene) -> None:
    x = float(_LEFT)
    for look, name in (
        (Look("compute", COMPUTE.colour), "compute"),
        (_BUCKET, "one all-reduce for each bucket"),
        (Look("exposed", COMMUNICATION.colour, hatched=True), "exposed: no compute meanwhile"),
    ):
        draw_swatch(scene, look, x, 40)
        scene.write(x + 20, 40, name, SMALL, align="left")
        x += 40 + 7.4 * len(name)


def _draw_memory(scene: Scene, found: DdpStep, views: bool) -> None:
    scene.write(8, _MEMORY - 16, "What gradients and buckets hold on each rank", SMALL, align="left", bold=True)
    whole = float(found.gradient_bytes)
    bars = []
    for as_views, label in ((False, "beside"), (True, "as views")):
        buckets = (_BUCKET, float(sum(found.buckets)))
        segments = (buckets,) if as_views else ((GRADIENT, whole), buckets)
        bars.append(Bar(label, segments, gb(found.held(as_views)), bold=as_views is views))
    frame = Frame(_LEFT, _MEMORY, _SPAN - 120, 26, 18, max(1.0, float(found.held(False))))
    draw_bars(scene, frame, bars)


def _collectives(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if event.kind == "communication"]


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.01 else f"{1e3 * seconds:.2g} ms"
