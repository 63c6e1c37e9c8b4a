"""A step of FSDP in two pictures: bytes of one GPU at each moment, and compute and communication on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from utils.theory.events import Event
from utils.theory.fsdp_step import FsdpStep
from utils.theory.lifecycle import Lifecycle
from utils.theory.moments import Moment
from utils.theory.units import GB, format_seconds
from utils.views.bars import draw_key, gb
from utils.views.board import Scene
from utils.views.clock import draw_clock
from utils.views.figure import DOTS_PER_INCH, WIDTH
from utils.views.kinds import PART_LOOKS, Look
from utils.views.memory_curve import ROOM, Plot, draw_curve, draw_phases, most_of_each
from utils.views.palette import COMMUNICATION, COMPUTE, INK, PAPER, SMALL, TITLE, paler

_LEFT, _CURVE, _PLOT = 96, 108, 190
_SPAN = WIDTH - _LEFT - 24
_CLOCK, _LANE = _CURVE + _PLOT + 92, 22
HEIGHT = _CLOCK + 4 * _LANE + 36
_IN_ROW = 5
_NAMES = {
    "weights": "shards",
    "gathered": "whole weights",
    "gradients": "gradient shards",
    "master_weights": "master weights",
    "optimizer": "moments",
    "temporaries": "optimizer's work",
    "activations": "activations",
    "logits": "logits",
    "working": "work",
    "buffers": "buffers",
}
_GATHER = COMMUNICATION.colour
_SCATTER = paler(COMMUNICATION.colour, 0.55)


@dataclass(frozen=True)
class Shown:
    """What is shown. who: model, GPUs and units in words. law: of the parameters alone. memory: of a GPU in bytes.

    where: rate and link of the time line, in words.
    """

    who: str
    step: FsdpStep
    law: Lifecycle
    memory: float
    memory_name: str
    where: str

    @property
    def fits(self) -> str:
        return "fits into" if self.step.fits(self.memory) else "does not fit into"


def fsdp_step_scene(shown: Shown) -> Scene:
    """WIDTH by HEIGHT pixels."""
    scene, step = Scene(), shown.step
    peak = step.peak
    scene.write(16, 18, shown.who, TITLE, align="left", bold=True)
    verdict = f"it {shown.fits} {shown.memory_name}"
    scene.write(16, 40, f"At its largest: {peak.name}, {gb(peak.total)}; {verdict}.", align="left")
    moments = largest_of_each_block(step.moments)
    looks = [(PART_LOOKS[part], _NAMES[part]) for part, size in most_of_each(moments).items() if size]
    for row in range(0, len(looks), _IN_ROW):
        for place, look in enumerate(looks[row : row + _IN_ROW]):
            draw_key(scene, 16 + 162 * place, 64 + 20 * (row // _IN_ROW), [look])
    plot = Plot(_LEFT, _CURVE, _SPAN, _PLOT, ROOM * max(peak.total, shown.memory))
    draw_curve(scene, plot, moments)
    draw_phases(scene, plot, [moment.name.split(",")[0] for moment in moments])
    y = plot.y(shown.memory)
    scene.line(_LEFT, y, _LEFT + _SPAN, y, INK, 3)
    x, y = 16 + 162 * (_IN_ROW - 1), 64 + 20 * (len(looks) // _IN_ROW)  # in the key: a name at the line lies on bars
    scene.line(x, y, x + 14, y, INK, 3)
    scene.write(x + 20, y, f"a GPU's {shown.memory_name}", SMALL, align="left")
    _draw_time(scene, shown)
    return scene


def fsdp_step_words(shown: Shown) -> str:
    """The picture in words."""
    step, time, law = shown.step, shown.step.time, shown.law
    whole = law.peak.bytes - law.at_rest
    hidden = f"{100 * step.hidden:.0f}% of it hidden, " if time.communication else ""
    return (
        f"{shown.who}: at most {gb(step.peak.total)} ({step.peak.name}), which {shown.fits} {shown.memory_name}; "
        f"{gb(step.at_rest)} are model states. Parameters: shards of {_gb(law.at_rest)}, at most {_gb(whole)} whole or "
        f"arriving, the root's {_gb(step.root_bytes)} among them. Gathers in a step: {step.gathers}, "
        f"{_gb(step.unit_bytes)} for a unit. {shown.where}: a step takes {_time(time.seconds)}, compute "
        f"{_time(time.compute)}, communication {_time(time.communication)}, {hidden}{_time(time.exposed)} exposed; "
        f"{step.tokens_per_second:,.0f} tokens a second on each GPU."
    )


def largest_of_each_block(moments: Sequence[Moment]) -> list[Moment]:
    """Of the moments of one block in one pass the largest; what belongs to no block stays, in order."""
    found: dict[str, Moment] = {}
    for moment in moments:
        phase, _, rest = moment.name.partition(", ")
        block = rest.split(",")[0]
        name = f"{phase} {block}" if block.startswith("block") else moment.name
        if name not in found or moment.total > found[name].total:
            found[name] = moment
    return list(found.values())


def _draw_time(scene: Scene, shown: Shown) -> None:
    """Compute, gathers, reduce-scatters and what is exposed, on lanes of their own."""
    timeline, seconds = shown.step.time.timeline, shown.step.time.seconds
    scene.write(16, _CLOCK - 40, f"{shown.where}: {_time(seconds)} a step", align="left", bold=True)
    draw_key(scene, _LEFT, _CLOCK - 16, [
        (Look("compute", COMPUTE.colour), "compute"),
        (Look("all-gather", _GATHER), "all-gather"),
        (Look("reduce-scatter", _SCATTER), "reduce-scatter"),
        (Look("exposed", COMMUNICATION.colour, hatched=True), "exposed: no compute meanwhile"),
    ])  # fmt: skip
    scale = _SPAN / seconds
    lanes = (("forward", "forward", COMPUTE.colour), ("backward", "backward", COMPUTE.colour),
             ("network", "", ""))  # fmt: skip
    for row, (name, kind, colour) in enumerate(lanes):
        top = _CLOCK + row * _LANE
        scene.write(_LEFT - 8, top + _LANE / 2, name, SMALL, align="right")
        if kind:
            mine = [event for event in timeline.events if event.name.startswith(kind)]
            _draw_spans(scene, [(event.start, event.end) for event in mine], scale, top, colour)
        else:
            for gathers, its in ((True, _GATHER), (False, _SCATTER)):
                mine = [event for event in timeline.events if _moves(event, gathers)]
                _draw_spans(scene, [(event.start, event.end) for event in mine], scale, top, its)
    _draw_exposed(scene, joined(timeline.exposed_spans, 1 / scale), scale)
    draw_clock(scene, seconds, _CLOCK + 4 * _LANE + 4, _LEFT, _SPAN)


def _draw_exposed(scene: Scene, spans: Sequence[tuple[float, float]], scale: float) -> None:
    """One striped box, and white over the parts in which something computed: many striped boxes are slow to draw."""
    top = _CLOCK + 3 * _LANE
    scene.write(_LEFT - 8, top + _LANE / 2, "exposed", SMALL, align="right")
    if spans:
        left, right = _LEFT + spans[0][0] * scale, _LEFT + spans[-1][1] * scale
        width = max(1.0, right - left)
        scene.box(left, top + 2, width, _LANE - 4, PAPER, COMMUNICATION.colour, hatched=True)
    y, thick = top + _LANE / 2, (_LANE - 1) * 72 / DOTS_PER_INCH
    for (_, begin), (end, _) in pairwise(spans):
        scene.line(_LEFT + begin * scale, y, _LEFT + end * scale, y, PAPER, thick)


def _draw_spans(scene: Scene, spans: Sequence[tuple[float, float]], scale: float, top: float, colour: str) -> None:
    """Bars; those that are nearer than a pixel are one."""
    for begin, end in joined(spans, 1 / scale):
        if end > begin:
            scene.box(_LEFT + begin * scale, top + 2, max(1.0, (end - begin) * scale), _LANE - 4, colour)


def joined(spans: Sequence[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """The spans in order of their begin, those less than `gap` apart as one."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin - found[-1][1] < gap:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _moves(event: Event, gathers: bool) -> bool:
    return event.kind == "communication" and event.name.startswith("all_gather") is gathers


def _gb(size: float) -> str:
    return f"{size / GB:.3g} GB"


def _time(seconds: float) -> str:
    return format_seconds(float(f"{seconds:.3g}"))
