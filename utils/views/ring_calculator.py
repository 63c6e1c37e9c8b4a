"""The calculator of lesson 03: model or size, ranks, link and latency in; bytes, seconds and bandwidths out.

calculator = RingCalculator("Llama-2-7B", ranks=64, link="InfiniBand NDR")
calculator                       # shows itself in a notebook
calculator.ranks = 1024          # what moving the slider does
calculator.result.cost.seconds   # `theory.ring.RingCost`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.ring import RingCost
from utils.theory.units import GiB, KiB, MiB, format_bytes
from utils.views.calculator import Calculator
from utils.views.controls import name_control, named, number_control
from utils.views.ring_cost import HEIGHT, Question, ring_cost_scene, ring_cost_words, time_text

A_TENSOR = "a tensor of S bytes"
NAMES = (A_TENSOR, *PRESETS)
SIZES = tuple(KiB * 2**power for power in range(27))  # 1 KiB to 64 GiB
assert SIZES[-1] == 64 * GiB
RANKS = tuple(sorted({3, *(2**power for power in range(1, 11))}))  # 2 to 1024
ALPHAS = (0.0, 1e-6, 3.4e-6, 5e-6, 14e-6, 50e-6, 200e-6, 1e-3, 5e-3)  # seconds; 3.4 and 14 µs are NCCL's own figures
PRECISIONS = {"16 bit": 2, "32 bit": 4}


@dataclass(frozen=True)
class Result:
    """What is shown: the question, its cost by the laws, and both in words."""

    question: Question
    cost: RingCost
    words: str


class RingCalculator(Calculator):
    """Six controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    what: a name in `theory.models.PRESETS`, whose gradients are reduced, or `A_TENSOR` of `size` bytes (1 KiB to
    64 GiB). precision: "16 bit" or "32 bit", of the gradients. ranks: 3, or a power of two from 2 to 1024. link: a name
    in `theory.links.LINKS`. alpha: seconds that a message takes besides its bytes, 0 to 5 ms.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        what: str = "Llama-2-7B",
        ranks: int = 64,
        link: str = "InfiniBand NDR",
        alpha: float = 14e-6,
        size: float = 64 * MiB,
        precision: str = "16 bit",
    ) -> None:
        super().__init__(HEIGHT, words_height=92)
        self._what = Dropdown(options=list(NAMES), **named("Reduce", "What is reduced", 290, 56))
        self._precision = Dropdown(
            options=list(PRECISIONS), **named("Gradients", "Precision of a model's gradients", 170, 66)
        )
        self._size = SelectionSlider(
            options=[(format_bytes(size), size) for size in SIZES], **named("S", "Size of the tensor", 270, 20)
        )
        self._ranks = SelectionSlider(options=RANKS, **named("Ranks", "How many ranks", 250, 50))
        self._link = Dropdown(options=list(LINKS), **named("Link", "The link between two neighbours", 290, 36))
        self._alpha = SelectionSlider(
            options=[(time_text(alpha), alpha) for alpha in ALPHAS],
            **named("Latency", "Seconds that a message takes besides its bytes", 250, 56),
        )
        self._controls = (self._what, self._precision, self._size, self._ranks, self._link, self._alpha)
        self.lay_out(self._controls)
        self.what, self.precision, self.size = what, precision, size
        self.ranks, self.link, self.alpha = ranks, link, alpha
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    what = name_control(NAMES, "What is reduced: a model's name, or `A_TENSOR`.")
    precision = name_control(tuple(PRECISIONS), "Of a model's gradients, one of `PRECISIONS`.")
    size = number_control(SIZES, "S in bytes where a tensor is reduced, a power of two from 1 KiB to 64 GiB.")
    ranks = number_control(RANKS, "The number of ranks: 3, or a power of two from 2 to 1024.")
    link = name_control(tuple(LINKS), "A name in `theory.links.LINKS`.")
    alpha = number_control(ALPHAS, "Latency of a message in seconds, one of `ALPHAS`.")

    def _redraw(self, _change: Any = None) -> None:
        is_tensor = self.what == A_TENSOR
        self._size.disabled, self._precision.disabled = not is_tensor, is_tensor
        name, total_bytes = "A tensor", self.size
        if not is_tensor:
            name, total_bytes = self.what, PRECISIONS[self.precision] * PRESETS[self.what].parameters
        question = Question(name, total_bytes, self.ranks, LINKS[self.link], self.alpha)
        words = ring_cost_words(question)
        self.result = Result(question, question.cost, words)
        self.show(ring_cost_scene(question), words)
