"""The calculator of lesson 04: model, GPUs, stage, recipe, micro-batches in; bytes held and sent, and what fits, out.

calculator = ZeroCalculator("Llama-2-7B", gpus=64, stage=2)
calculator                               # shows itself in a notebook
calculator.gpus = 8                      # what moving the slider does
calculator.result.states[2].total        # bytes on each GPU, by stage
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, IntSlider, SelectionSlider

from utils.theory.memory import ModelStates
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.theory.traffic import StepTraffic
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, MEMORIES, name_control, named, number, number_control
from utils.views.zero import HEIGHT, Question, zero_scene, zero_words

STAGES = (0, 1, 2, 3)
MOST_MICRO_BATCHES = 16
_STAGE_LABELS = ("0: nothing is shared out", "1: optimizer states", "2: and gradients", "3: and weights")


@dataclass(frozen=True)
class Result:
    """What the calculator shows: by stage, bytes held and sent; the largest model under the chosen one; and words."""

    question: Question
    states: tuple[ModelStates, ...]
    traffic: tuple[StepTraffic, ...]
    most_parameters: int
    words: str


class ZeroCalculator(Calculator):
    """Six controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: a power of two from 1 to 1024. stage: 0 to 3, the one that is told
    in full. recipe: a name in `theory.recipes.PRECISION_RECIPES`. micro_batches: 1 to 16. memory: a name in `MEMORIES`;
    GB is 10^9 bytes, GiB is 2^30.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 64,
        stage: int = 2,
        recipe: str = "zero-paper",
        micro_batches: int = 1,
        memory: str = "80 GB",
    ) -> None:
        super().__init__(HEIGHT, words_height=112)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 270, 50))
        self._recipe = Dropdown(
            options=[(f"{each.total:g} B: {each.title}", name) for name, each in PRECISION_RECIPES.items()],
            **named("Recipe", "Optimizer and precision: bytes per parameter", 520, 50),
        )
        self._stage = Dropdown(
            options=list(zip(_STAGE_LABELS, STAGES, strict=True)),
            **named("Stage", "What is shared out among the GPUs", 250, 50),
        )
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many data-parallel GPUs", 240, 50))
        self._micro_batches = IntSlider(
            min=1,
            max=MOST_MICRO_BATCHES,
            **named("Micro-batches", "How many micro-batches before each optimizer step", 310, 96),
        )
        self._memory = SelectionSlider(
            options=list(MEMORIES),
            **named("GPU memory", "The memory of one GPU: GB is 10^9 bytes, GiB is 2^30", 300, 86),
        )
        self._controls = (self._model, self._recipe, self._stage, self._gpus, self._micro_batches, self._memory)
        self.lay_out(self._controls)
        self.model, self.recipe, self.stage = model, recipe, stage
        self.gpus, self.micro_batches, self.memory = gpus, micro_batches, memory
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    recipe = name_control(tuple(PRECISION_RECIPES), "Optimizer and precision, one of `PRECISION_RECIPES`.")
    stage = number_control(STAGES, "The stage that is told in full, 0 to 3.")
    gpus = number_control(GPUS, "The number of data-parallel GPUs, a power of two from 1 to 1024.")
    memory = name_control(tuple(MEMORIES), "The memory of one GPU, one of `MEMORIES`.")

    @property
    def micro_batches(self) -> int:
        """Micro-batches before each optimizer step, 1 to 16."""
        return self._micro_batches.value

    @micro_batches.setter
    def micro_batches(self, micro_batches: float) -> None:
        within = min(max(number("micro_batches", micro_batches), 1), MOST_MICRO_BATCHES)
        self._micro_batches.value = round(within)

    def _redraw(self, _change: Any = None) -> None:
        question = Question(
            name=self.model,
            parameters=PRESETS[self.model].parameters,
            memory=MEMORIES[self.memory],
            memory_name=self.memory,
            world_size=self.gpus,
            stage=self.stage,
            recipe=self.recipe,
            micro_batches=self.micro_batches,
        )
        words = zero_words(question)
        self.result = Result(question, question.states, question.traffic, question.most_parameters, words)
        self.show(zero_scene(question), words)
