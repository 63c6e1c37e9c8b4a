"""Where the time of a step goes: computations, collectives, and what of these is exposed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from utils.theory.events import Event, Timeline
from utils.views.board import Board, Scene, Words, extent
from utils.views.clock import draw_clock
from utils.views.figure import WIDTH, Picture
from utils.views.palette import COMMUNICATION, COMPUTE, PAPER, SMALL, TITLE, ink_on

TOLERANCE = 0.1  # of the first time line's seconds: within it, another counts as equally long

_LEFT, _TOP, _LANE, _GAP, _HEADING = 88, 62, 20, 10, 22
_SPAN = WIDTH - _LEFT - 16  # pixels for the whole time
_FOOT = 34
_INITIAL = {"forward": "f", "backward": "b"}


def step_time_picture(timelines: Timeline | Mapping[str, Timeline], title: str = "") -> Picture:
    """One or several time lines on one scale, such as {"simulated": step.timeline, "measured, rank 0": ...}.

    For each: its computations, the collectives on its links (those that overlap on lanes of their own), and below them
    where no computation ran. What is measured comes after what it is to agree with: the words tell a length only where
    it differs by more than `TOLERANCE` from the first one's.
    Raises ValueError if there is nothing to draw.
    """
    named = {"": timelines} if isinstance(timelines, Timeline) else dict(timelines)
    scene, height = step_time_scene(named, title)
    board = Board(height, WIDTH)
    board.show(scene)
    return Picture(board.figure, step_time_words(named, title))


def step_time_scene(timelines: Mapping[str, Timeline], title: str = "") -> tuple[Scene, int]:
    """(the scene that `step_time_picture` shows, its height in pixels)."""
    _check(timelines)
    last = max(timeline.seconds for timeline in timelines.values())
    scene = Scene()
    scene.write(_LEFT, 18, title or "Where the time of a step goes", TITLE, align="left", bold=True)
    _draw_key(scene, any(event.name.startswith("backward") for t in timelines.values() for event in t.events))
    top = float(_TOP)
    for label, timeline in timelines.items():
        top = _draw_timeline(scene, label, timeline, _SPAN / last, top)
    draw_clock(scene, last, top, _LEFT, _SPAN)
    return scene, round(top) + _FOOT


def step_time_words(timelines: Mapping[str, Timeline], title: str = "") -> str:
    """The picture in words: its text alternative."""
    _check(timelines)
    said = []
    first = next(iter(timelines.values()))
    for label, timeline in timelines.items():
        name = f"{label}: " if label else ""
        agrees = abs(timeline.seconds - first.seconds) <= TOLERANCE * first.seconds
        if timeline is not first and agrees:
            said.append(f"{name}as long within {100 * TOLERANCE:g}%.")
            continue
        # A collective cut into messages counts once, by its last one: the others have names such as "…, sent".
        collectives = sum(event.kind == "communication" and ", " not in event.name for event in timeline.events)
        computes = any(event.kind == "compute" for event in timeline.events)
        waiting = f", {_ms(timeline.exposed)} of it only waiting for communication" if computes else ""
        said.append(f"{name}{_ms(timeline.seconds)} with {collectives} collectives{waiting}.")
    return f"{title or 'Where the time of a step goes'}. {' '.join(said)}"


def _check(timelines: Mapping[str, Timeline]) -> None:
    for label, timeline in timelines.items():
        if not isinstance(timeline, Timeline):
            raise ValueError(f"{label!r} is {timeline!r}; give a Timeline, as a simulated step's .timeline is")
    if not any(timeline.seconds for timeline in timelines.values()):
        raise ValueError("nothing takes any time here; give at least one time line with an event that does")


def _draw_key(scene: Scene, by_pass: bool) -> None:
    """by_pass: whether there are bars for forward and for backward."""
    x = float(_LEFT)
    for colour, hatched, name, width in (
        (COMPUTE.colour, False, *(("compute: f forward, b backward", 244) if by_pass else ("compute", 96))),
        (COMMUNICATION.colour, False, "communication", 136),
        (COMMUNICATION.colour, True, "exposed: no compute meanwhile", 200),
    ):
        _draw_bar(scene, x, 33, 14, 12, colour, hatched)
        scene.write(x + 20, 39, name, align="left")
        x += width


def _draw_timeline(scene: Scene, label: str, timeline: Timeline, scale: float, top: float) -> float:
    """Draw one time line from `top` on; where the next one may begin."""
    if label:
        scene.write(_LEFT, top + 8, label, SMALL, align="left", bold=True)
        top += _HEADING
    for lane, kind in dict.fromkeys((event.lane, event.kind) for event in _computing_first(timeline)):
        events = [event for event in timeline.events if event.lane == lane]
        rows = _rows(events)
        scene.write(_LEFT - 8, top + _LANE / 2 - 1, _fitted(lane), SMALL, align="right")
        colour = COMPUTE.colour if kind == "compute" else COMMUNICATION.colour
        for row, event in rows:
            left, width = _LEFT + event.start * scale, (event.end - event.start) * scale
            if width > 0:
                _draw_bar(scene, left, top + row * _LANE, max(1.0, width), _LANE - 2, colour)
                _label(scene, event.name, left, width, top + row * _LANE, colour)
        top += (1 + max(row for row, _ in rows)) * _LANE
    if any(event.kind == "compute" for event in timeline.events):
        scene.write(_LEFT - 8, top + _LANE / 2 - 1, "exposed", SMALL, align="right")
        for start, end in timeline.exposed_spans:
            width = (end - start) * scale
            if width >= 1.0:  # from one measured computation to the next there are some microseconds: no wait
                _draw_bar(scene, _LEFT + start * scale, top, width, _LANE - 2, COMMUNICATION.colour, True)
        top += _LANE
    scene.line(_LEFT, top + _GAP / 2, _LEFT + _SPAN, top + _GAP / 2, "#DDDDDD")
    return top + _GAP


def _computing_first(timeline: Timeline) -> list[Event]:
    return sorted(timeline.events, key=lambda event: event.kind != "compute")


def _rows(events: list[Event]) -> list[tuple[int, Event]]:
    """(row, event): the first row that is free when the event starts."""
    busy_until: list[float] = []
    placed = []
    for event in sorted(events, key=lambda event: (event.start, event.end)):
        row = next((row for row, end in enumerate(busy_until) if end <= event.start), len(busy_until))
        if row == len(busy_until):
            busy_until.append(0.0)
        busy_until[row] = event.end
        placed.append((row, event))
    return placed


def _draw_bar(
    scene: Scene, left: float, top: float, width: float, height: float, colour: str, hatched: bool = False
) -> None:
    """Bars that touch keep a white edge between them, unless they are too narrow for one."""
    if hatched:
        scene.box(left, top, width, height, PAPER, colour, hatched=True)
    else:
        scene.box(left, top, width, height, colour, edge=PAPER if width > 3 else "none")


def _label(scene: Scene, name: str, left: float, width: float, top: float, colour: str) -> None:
    """The name in the bar, "f3" or "b3" or the number alone if there is no room, "f" or "b" alone, or nothing."""
    candidates = ((name, 4), (_short(name), 4), (_INITIAL.get(name.split()[0], ""), 1))
    for text, edges in (each for each in candidates if each[0]):
        word = Words(left + width / 2, top + _LANE / 2 - 1, text, SMALL, colour=ink_on(colour))
        zeros = replace(word, text=re.sub(r"\d", "0", text))  # of equal bars all have their number, or none
        ink_left, _, ink_right, _ = extent(zeros)
        if ink_right - ink_left <= width - edges:
            scene.words.append(word)
            return


def _short(name: str) -> str:
    """ "f3" for "forward 3 of micro-batch 0", "3" for "all_gather for forward 3"; a name without a number stays."""
    number = re.search(r"\d+", name)
    return (_INITIAL.get(name.split()[0], "") + number.group()) if number else name


def _fitted(name: str) -> str:
    return name if len(name) <= 10 else f"{name[:9]}…"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.01 else f"{1e3 * seconds:.2g} ms"
