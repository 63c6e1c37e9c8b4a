"""The calculator of storage: what is trained, GPUs and the store in; samples and bytes a second, and who waits, out.

calculator = FeedCalculator("ViT-B/16, JPEG", gpus=64, store=10)
calculator                         # shows itself in a notebook
calculator.gpus = 512              # what moving the slider does
calculator.result.question.step    # seconds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.flops import PEAK_FLOPS
from utils.theory.units import GB
from utils.views.calculator import Calculator
from utils.views.controls import name_control, named, number_control
from utils.views.infra_feed import HEIGHT, OFFERED, Question, feed_scene, feed_words

GPUS = tuple(2**power for power in range(15))  # 1 to 16,384
STORES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # GB/s
BATCHES = tuple(2**power for power in range(10))  # 1 to 512
UTILIZATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Result:
    """What is shown: the question, which knows its answers, and its words."""

    question: Question
    words: str


class FeedCalculator(Calculator):
    """Six controls, a sentence and a picture.

    sample: a name in `infra_feed.OFFERED`. gpus: 1 to 16,384, powers of two. gpu: a name in `theory.flops.PEAK_FLOPS`.
    utilization: share of the peak, 0.1 to 0.6. batch: samples of one GPU, 1 to 512. store: GB/s, 0.1 to 1,000.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        sample: str = "ViT-B/16, JPEG",
        gpus: int = 64,
        store: float = 10,
        batch: int = 128,
        gpu: str = "H100",
        utilization: float = 0.3,
    ) -> None:
        super().__init__(HEIGHT, words_height=72)
        self._sample = Dropdown(options=list(OFFERED), **named("Train", "What is trained on", 290, 44))
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many", 250, 44))
        self._gpu = Dropdown(options=list(PEAK_FLOPS), **named("Type", "Type of GPU", 170, 40))
        self._utilization = SelectionSlider(
            options=UTILIZATIONS, **named("Share of the peak", "Model operations over the peak", 290, 116)
        )
        self._batch = SelectionSlider(options=BATCHES, **named("Samples per GPU", "In a step", 270, 116))
        self._store = SelectionSlider(options=STORES, **named("Store, GB/s", "For all GPUs together", 250, 80))
        controls = (self._sample, self._gpus, self._gpu, self._utilization, self._batch, self._store)
        self.lay_out(controls)
        self.sample, self.gpus, self.gpu = sample, gpus, gpu
        self.utilization, self.batch, self.store = utilization, batch, store
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    sample = name_control(tuple(OFFERED), "What is trained on, a name in `infra_feed.OFFERED`.")
    gpus = number_control(GPUS, "How many GPUs, 1 to 16,384.")
    gpu = name_control(tuple(PEAK_FLOPS), "The type of GPU, a name in `theory.flops.PEAK_FLOPS`.")
    utilization = number_control(UTILIZATIONS, "Model operations over the peak, 0.1 to 0.6.")
    batch = number_control(BATCHES, "Samples of one GPU in a step, 1 to 512.")
    store = number_control(STORES, "What the store delivers to all GPUs, in GB/s, 0.1 to 1,000.")

    def _redraw(self, _change: Any = None) -> None:
        asked = Question(OFFERED[self.sample], self.gpus, self.gpu, self.utilization, self.batch, self.store * GB)
        words = feed_words(asked)
        self.result = Result(asked, words)
        self.show(feed_scene(asked), words)
