"""The life of parameters as something to play: run, pause, step through the events of one step of FSDP.

stepper = LifecycleStepper(ranks=2)
stepper                    # shows itself in a notebook
stepper.step = 3           # what the slider does
stepper.result.event       # the `theory.lifecycle.Held` that is shown
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Button, Checkbox, IntSlider, Layout, Play, link

from utils.theory.lifecycle import Held
from utils.views.calculator import Calculator
from utils.views.controls import flag_control, named, number
from utils.views.lifecycle import HEIGHT, RANKS, life, lifecycle_scene, lifecycle_words

MILLISECONDS = 1200  # between two events while it plays


@dataclass(frozen=True)
class Result:
    """What is shown, and the same in words."""

    world_size: int
    event: Held
    words: str


class LifecycleStepper(Calculator):
    """A player for the events of a step of four units. One figure is kept and redrawn.

    ranks: 2 to 4. prefetch: whether backward gathers one unit ahead. step: the event, 0 to the last. A number out of
    range becomes the nearest that the control offers.
    """

    def __init__(self, ranks: int = 2, prefetch: bool = True, step: int = 0) -> None:
        super().__init__(HEIGHT, words_height=72)
        last = len(life(RANKS[0]).events) - 1
        self._ranks = IntSlider(min=RANKS[0], max=RANKS[-1], **named("Ranks", "How many ranks", 200, 50))
        self._step = IntSlider(min=0, max=last, **named("Event", "Which event is shown", 230, 40))
        self._play = Play(min=0, max=last, interval=MILLISECONDS, tooltip="Play, pause, start again")
        self._back = Button(description="◀ back", tooltip="One event back", layout=Layout(width="80px"))
        self._forward = Button(description="step ▶", tooltip="One event forwards", layout=Layout(width="80px"))
        self._prefetch = Checkbox(
            description="prefetch",
            tooltip="Backward gathers one unit ahead",
            indent=False,
            layout=Layout(width="96px"),
        )
        link((self._play, "value"), (self._step, "value"))
        self.lay_out([self._ranks, self._play, self._back, self._forward, self._step, self._prefetch])
        self.ranks, self.prefetch, self.step = ranks, prefetch, step
        self._back.on_click(lambda _: self._move(-1))
        self._forward.on_click(lambda _: self._move(+1))
        for control in (self._ranks, self._step, self._prefetch):
            control.observe(self._redraw, names="value")
        self._redraw()

    prefetch = flag_control("Whether backward gathers one unit ahead.")

    @property
    def ranks(self) -> int:
        """The number of ranks, 2 to 4."""
        return self._ranks.value

    @ranks.setter
    def ranks(self, ranks: float) -> None:
        self._ranks.value = round(min(max(number("ranks", ranks), RANKS[0]), RANKS[-1]))

    @property
    def step(self) -> int:
        """The event that is shown."""
        return self._step.value

    @step.setter
    def step(self, step: float) -> None:
        self._step.value = round(min(max(number("step", step), 0), self._step.max))

    def _move(self, by: int) -> None:
        self.step = self.step + by

    def _redraw(self, _change: Any = None) -> None:
        ranks, step, prefetch = self.ranks, self.step, self.prefetch
        words = lifecycle_words(step, ranks, prefetch)
        self.result = Result(ranks, life(ranks, prefetch).events[step], words)
        self.show(lifecycle_scene(step, ranks, prefetch), words)
