"""The ring as something to play: run, pause, step forwards and back, on 2 to 8 ranks.

stepper = RingStepper(ranks=4, size=64 * MiB)
stepper                    # shows itself in a notebook
stepper.step = 3           # what the slider does
stepper.result.state       # the `theory.ring.RingState` that is shown
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Button, IntSlider, Layout, Play, link

from utils.theory.ring import RingState, ring_states
from utils.theory.traffic import collective_bytes
from utils.theory.units import MiB
from utils.views.calculator import Calculator
from utils.views.controls import named, number
from utils.views.ring import FEWEST, HEIGHT, MOST, ring_scene, ring_words

MILLISECONDS = 1200  # between two steps while it plays


@dataclass(frozen=True)
class Result:
    """What is shown, and the same in words."""

    world_size: int
    total_bytes: float
    state: RingState
    words: str


class RingStepper(Calculator):
    """A player for the 2 (n - 1) steps of a ring all-reduce. One figure is kept and redrawn.

    ranks: 2 to 8. size: S in bytes. A number out of range becomes the nearest that the control offers.
    """

    def __init__(self, ranks: int = 4, size: float = 64 * MiB) -> None:
        super().__init__(HEIGHT, words_height=72)
        collective_bytes("all_reduce", size, FEWEST)  # for its check of the size
        self._size = size
        self._ranks = IntSlider(min=FEWEST, max=MOST, **named("Ranks", "How many ranks", 220, 50))
        self._step = IntSlider(min=0, max=2, **named("Step", "Which step is shown", 260, 40))
        self._play = Play(min=0, max=2, interval=MILLISECONDS, tooltip="Play, pause, start again")
        self._back = Button(description="◀ back", tooltip="One step back", layout=Layout(width="80px"))
        self._forward = Button(description="step ▶", tooltip="One step forwards", layout=Layout(width="80px"))
        link((self._play, "value"), (self._step, "value"))
        self.lay_out([self._ranks, self._play, self._back, self._forward, self._step])
        self.ranks = ranks
        self._fit_steps()
        self._back.on_click(lambda _: self._move(-1))
        self._forward.on_click(lambda _: self._move(+1))
        self._ranks.observe(self._restart, names="value")
        self._step.observe(self._redraw, names="value")
        self._redraw()

    @property
    def ranks(self) -> int:
        """The number of ranks, 2 to 8."""
        return self._ranks.value

    @ranks.setter
    def ranks(self, ranks: float) -> None:
        self._ranks.value = round(min(max(number("ranks", ranks), FEWEST), MOST))

    @property
    def step(self) -> int:
        """The step that is shown, 0 to 2 (n - 1)."""
        return self._step.value

    @step.setter
    def step(self, step: float) -> None:
        self._step.value = round(min(max(number("step", step), 0), self._step.max))

    def _move(self, by: int) -> None:
        self.step = self.step + by

    def _fit_steps(self) -> None:
        """As many steps as the ring has; the first is shown."""
        last = 2 * (self.ranks - 1)
        self._step.value = 0
        self._step.max = self._play.max = last

    def _restart(self, _change: Any = None) -> None:
        self._fit_steps()
        self._redraw()

    def _redraw(self, _change: Any = None) -> None:
        ranks, step = self.ranks, self.step
        words = ring_words(ranks, step, self._size)
        self.result = Result(ranks, self._size, ring_states(ranks)[step], words)
        self.show(ring_scene(ranks, step, self._size), words)
