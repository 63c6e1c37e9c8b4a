"""Bytes of parameters over a step of FSDP: a bar for each event, of shards and of what is whole, and what was measured.

Heights are shares of all parameters, so that laws read as they are written: 1/N + 1/L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from utils.theory.lifecycle import Held, Lifecycle
from utils.views.board import Board, Scene
from utils.views.figure import WIDTH, Picture
from utils.views.kinds import PART_LOOKS, WEIGHTS, Look, draw_block, draw_swatch
from utils.views.palette import COMMUNICATION, FAINT, INK, PARAMETERS, SMALL, TITLE, paler

SAME = 0.001  # of all parameters: a measured value so near to the predicted one is drawn as equal

GATHERED = PART_LOOKS["gathered"]
ARRIVING = Look("arriving ahead", COMMUNICATION.colour)
KEPT = Look("parts kept", paler(PARAMETERS.colour, 0.4))
LEFTOVER = Look("buffer left over", COMMUNICATION.colour, hatched=True)
#: (field of `theory.lifecycle.Held`, look, name in words), from the bottom of a bar to its top.
KINDS: tuple[tuple[str, Look, str], ...] = (
    ("shards", WEIGHTS, "shards"),
    ("kept", KEPT, "parts kept after forward"),
    ("gathered", GATHERED, "whole units"),
    ("arriving", ARRIVING, "units gathered ahead"),
    ("leftover", LEFTOVER, "buffer left over"),
)

_LEFT, _TOP, _SPAN = 64, 66, WIDTH - 64 - 16
_HEADING, _PANEL, _LABELS, _GAP = 28, 96, 20, 12  # pixels, from the top of a panel to the next one
_NARROW = 22  # a bar narrower than that has no label of its own
_APART = 34  # pixels between labels where not every bar has one
_MARK = 4.0  # pixels: how thick a measured value is drawn


@dataclass(frozen=True)
class Curve:
    """One panel. measured: bytes at the same events, in order, or None if nothing was measured.

    Raises ValueError if there are more or fewer of them than events.
    """

    name: str
    predicted: Lifecycle
    measured: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.measured is not None and len(self.measured) != len(self.predicted.events):
            raise ValueError(
                f"measured has {len(self.measured)} values for {len(self.predicted.events)} events; give one for each"
            )

    @property
    def equal(self) -> int:
        """How many of the measured values are the predicted ones."""
        pairs = zip(self.predicted.events, self.measured or (), strict=False)
        return sum(abs(event.bytes - found) <= SAME * self.predicted.whole for event, found in pairs)


def curve_picture(curves: Sequence[Curve], title: str = "Parameters that a rank holds, event after event") -> Picture:
    """Panels below each other on one scale. Raises ValueError without any."""
    board = Board(curve_height(len(curves)), WIDTH)
    board.show(curve_scene(curves, title))
    return Picture(board.figure, curve_words(curves, title))


def curve_height(panels: int) -> int:
    """Pixels of so many curves."""
    return _TOP + panels * (_HEADING + _PANEL + _LABELS + _GAP)


def curve_words(curves: Sequence[Curve], title: str) -> str:
    """The picture in words: rest, peak, and how many measured values are as predicted."""
    said = []
    for curve in curves:
        law = curve.predicted
        words = f"{law.at_rest / law.whole:.3g} of all parameters at rest, at most {law.peak.bytes / law.whole:.3g}"
        words = (
            f"{curve.name}: {words}, first when {law.peak.label}"
            if curve.name
            else f"{words}, first when {law.peak.label}"
        )
        if curve.measured is not None:
            words += f"; measured: {curve.equal} of {len(law.events)} events as predicted"
        said.append(f"{words}.")
    return f"{title}. {' '.join(said)}"


def curve_scene(curves: Sequence[Curve], title: str) -> Scene:
    """The scene that `curve_picture` shows, WIDTH by `curve_height` pixels."""
    if not curves:
        raise ValueError("curves is empty; give at least one Curve")
    scene = Scene()
    scene.write(8, 18, title, TITLE, align="left", bold=True)
    _draw_key(scene, curves)
    most = max(max((event.bytes, *(curve.measured or ()))) / curve.predicted.whole
               for curve in curves for event in curve.predicted.events)  # fmt: skip
    top = float(_TOP)
    for curve in curves:
        if curve.name:
            scene.write(_LEFT, top + 8, curve.name, SMALL, align="left", bold=True)
        _draw_panel(scene, curve, top + _HEADING, _PANEL / max(most, 1e-9), most)
        top += _HEADING + _PANEL + _LABELS + _GAP
    return scene


def _draw_key(scene: Scene, curves: Sequence[Curve]) -> None:
    x = 8.0
    used = [kind for kind in KINDS if any(getattr(e, kind[0]) for curve in curves for e in curve.predicted.events)]
    for _, look, name in used:
        draw_swatch(scene, look, x, 42)
        scene.write(x + 20, 42, name, SMALL, align="left")
        x += 44 + 7.4 * len(name)
    if any(curve.measured is not None for curve in curves):
        scene.line(x, 42, x + 14, 42, INK, _MARK)
        scene.write(x + 20, 42, "measured", SMALL, align="left")


def _draw_panel(scene: Scene, curve: Curve, top: float, scale: float, most: float) -> None:
    """scale: pixels for all parameters."""
    floor, events = top + _PANEL, curve.predicted.events
    for share in _steps(most):
        scene.box(_LEFT, floor - share * scale, _SPAN, 1, paler(FAINT, 0.4))  # a box, so that bars lie over it
        scene.write(_LEFT - 6, floor - share * scale, f"{share:g}", SMALL, align="right")
    pitch = _SPAN / len(events)
    gap = 3.0 if pitch > _NARROW else 0.0
    skip = 1 if pitch > _NARROW else math.ceil(_APART / pitch)
    labelled = -float(_APART)  # where the latest label stands
    for number, event in enumerate(events):
        x, y = _LEFT + number * pitch + gap / 2, floor
        for field, look, _ in KINDS:
            height = getattr(event, field) / curve.predicted.whole * scale
            y -= height
            draw_block(scene, look, x, y, pitch - gap, height)
        if curve.measured is not None:
            height = curve.measured[number] / curve.predicted.whole * scale
            inset = min(10.0, (pitch - gap) / 4)
            scene.line(x + inset, floor - height, x + pitch - gap - inset, floor - height, INK, _MARK)
        name, middle = short(event), x + (pitch - gap) / 2
        if name and (skip == 1 or (event.unit is not None and event.unit % skip == 0 and middle - labelled >= _APART)):
            scene.write(middle, floor + 10, name, SMALL)
            labelled = middle
    scene.line(_LEFT, floor, _LEFT + _SPAN, floor, INK, 1.0)


def short(event: Held) -> str:
    """ "f2" inside the forward of unit 2, "b2" inside its backward, "f" and "b" for the model, "" after a unit."""
    if event.unit is None:
        return event.phase[0]
    return "" if event.done else f"{event.phase[0]}{event.unit}"


def _steps(most: float) -> list[float]:
    """Round shares from 0 to `most`, about three of them."""
    sizes = (digit * 10.0**power for power in range(-5, 5) for digit in (1, 2.5, 5))
    step = next(step for step in sizes if most / step < 5)
    return [i * step for i in range(int(most / step + 1e-9) + 1)]
