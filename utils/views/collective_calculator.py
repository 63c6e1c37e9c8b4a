"""The calculator of lesson 00: collective, ranks and size in; bytes by rank and the picture out.

calculator = CollectiveCalculator("all_reduce", ranks=4, size=64 * MiB)
calculator                          # shows itself in a notebook
calculator.ranks = 8                # what moving the slider does
calculator.result.traffic[0].sent   # bytes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, IntSlider, Layout, SelectionSlider

from utils.theory.traffic import Traffic, check_group, traffic_by_rank
from utils.theory.units import GiB, KiB, MiB, format_bytes
from utils.views.calculator import Calculator
from utils.views.collectives import HEIGHT, KINDS, MOST_RANKS, collective_scene, collective_words
from utils.views.controls import number

SIZES = tuple(KiB * 2**power for power in range(21))  # 1 KiB to 1 GiB
assert SIZES[-1] == GiB
FEWEST_RANKS = 2


@dataclass(frozen=True)
class Result:
    """What the calculator shows: `traffic` by rank in bytes, and the same in words."""

    kind: str
    world_size: int
    total_bytes: int
    traffic: tuple[Traffic, ...]
    words: str


class CollectiveCalculator(Calculator):
    """Three controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    kind: one of `collectives.KINDS`; ranks: 2 to 16; size: bytes. A number out of range becomes the nearest that the
    control offers, as if the slider had been pulled to its end; an unknown kind raises ValueError with suggestions.
    """

    def __init__(self, kind: str = "all_reduce", ranks: int = 4, size: float = 64 * MiB) -> None:
        super().__init__(HEIGHT, words_height=52)
        self._kind = Dropdown(
            options=[(_name(kind), kind) for kind in KINDS],
            description="Collective",
            tooltip="Which collective",
            layout=Layout(width="260px"),
            style={"description_width": "70px"},
        )
        self._ranks = IntSlider(
            min=FEWEST_RANKS,
            max=MOST_RANKS,
            description="Ranks",
            tooltip="How many ranks",
            layout=Layout(width="250px"),
            style={"description_width": "50px"},
        )
        self._size = SelectionSlider(
            options=[(format_bytes(size), size) for size in SIZES],
            description="S (size)",
            tooltip="How many bytes S is",
            layout=Layout(width="310px"),
            style={"description_width": "60px"},
        )
        self.lay_out([self._kind, self._ranks, self._size])
        self.kind, self.ranks, self.size = kind, ranks, size
        for control in (self._kind, self._ranks, self._size):
            control.observe(self._redraw, names="value")
        self._redraw()

    @property
    def kind(self) -> str:
        """The collective, one of `collectives.KINDS`."""
        return self._kind.value

    @kind.setter
    def kind(self, kind: str) -> None:
        check_group(kind, FEWEST_RANKS, 0, kinds=KINDS)
        self._kind.value = kind

    @property
    def ranks(self) -> int:
        """The number of ranks, 2 to 16."""
        return self._ranks.value

    @ranks.setter
    def ranks(self, ranks: int) -> None:
        self._ranks.value = round(min(max(number("ranks", ranks), FEWEST_RANKS), MOST_RANKS))

    @property
    def size(self) -> int:
        """S in bytes, a power of two from 1 KiB to 1 GiB."""
        return self._size.value

    @size.setter
    def size(self, size: float) -> None:
        wanted = min(max(number("size", size), SIZES[0]), SIZES[-1])
        self._size.value = min(SIZES, key=lambda offered: abs(offered - wanted))

    def _redraw(self, _change: Any = None) -> None:
        kind, world_size, total_bytes = self.kind, self.ranks, self.size
        words = collective_words(kind, world_size, total_bytes)
        self.result = Result(kind, world_size, total_bytes, traffic_by_rank(kind, total_bytes, world_size), words)
        self.show(collective_scene(kind, world_size, total_bytes), words)


def _name(kind: str) -> str:
    return "send and receive" if kind == "send" else kind
