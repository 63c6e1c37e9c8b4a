"""The calculator of lesson 01: model, GPU, precision in; bytes on each GPU and the largest model that fits out.

calculator = MemoryCalculator("Llama-2-7B", memory="80 GB")
calculator                          # shows itself in a notebook
calculator.gpus = 64                # what moving the slider does
calculator.result.states.total      # bytes on each GPU
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, IntSlider, SelectionSlider

from utils.theory.memory import ModelStates
from utils.theory.models import PRESETS
from utils.theory.recipes import PRECISION_RECIPES
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, MEMORIES, flag_control, name_control, named, nearest, number, number_control
from utils.views.memory import HEIGHT, Question, memory_scene, memory_words

OWN = "a number of your own"
COUNTS = (*(mantissa * 10**power for power in range(8, 12) for mantissa in (1, 1.5, 2, 3, 5, 7)), 10**12)
MOST_RESERVE = 40  # per cent


@dataclass(frozen=True)
class Result:
    """What the calculator shows: bytes on each GPU, the largest number of parameters that fits, and it all in words."""

    question: Question
    states: ModelStates
    most_parameters: int
    words: str


class MemoryCalculator(Calculator):
    """Seven controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`, or a number of parameters. memory: a name in `MEMORIES`; GB is 10^9 bytes,
    GiB is 2^30. recipe: a name in `theory.recipes.PRECISION_RECIPES`. gpus: 1 to 1024. reserve: 0 to 40, per cent of
    the GPU's memory. bucket_copy: whether DDP keeps gradients in its buckets a second time.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str | float = "Llama-2-7B",
        memory: str = "80 GB",
        recipe: str = "zero-paper",
        gpus: int = 8,
        reserve: float = 0,
        bucket_copy: bool = False,
    ) -> None:
        super().__init__(HEIGHT, words_height=72)
        self._following = False  # while the slider of parameters follows the preset
        self._model = Dropdown(options=[OWN, *PRESETS], **named("Model", "Which model", 300, 50))
        self._count = SelectionSlider(
            options=[(_short(count), count) for count in COUNTS],
            **named("Parameters", "How many parameters, if they are a number of your own", 360, 80),
        )
        self._memory = SelectionSlider(
            options=list(MEMORIES),
            **named("GPU memory", "The memory of one GPU: GB is 10^9 bytes, GiB is 2^30", 300, 96),
        )
        self._recipe = Dropdown(
            options=[(f"{each.total:g} B: {each.title}", name) for name, each in PRECISION_RECIPES.items()],
            **named("Recipe", "Optimizer and precision: bytes per parameter", 520, 50),
        )
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many data-parallel GPUs", 230, 50))
        self._reserve = IntSlider(
            min=0,
            max=MOST_RESERVE,
            step=5,
            **named("Kept free (%)", "Per cent of the GPU's memory kept free", 280, 96),
        )
        self._bucket_copy = Checkbox(
            description="DDP keeps its own copy of the gradients",
            tooltip="DDP's buckets without gradient_as_bucket_view",
            indent=False,
            layout={"width": "290px"},
        )
        self._controls = (
            self._model,
            self._count,
            self._recipe,
            self._bucket_copy,
            self._memory,
            self._reserve,
            self._gpus,
        )
        self.lay_out(self._controls)
        self.model, self.memory, self.recipe = model, memory, recipe
        self.gpus, self.reserve, self.bucket_copy = gpus, reserve, bucket_copy
        self._model.observe(self._show_count, names="value")
        self._count.observe(self._own_number, names="value")
        self._show_count()
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    @property
    def model(self) -> str | float:
        """The preset's name, or the number of parameters."""
        return self._count.value if self._model.value == OWN else self._model.value

    @model.setter
    def model(self, model: str | float) -> None:
        if isinstance(model, str):
            self._model.value = PRESETS.named(model)
        else:
            self._count.value = nearest(COUNTS, number("model", model))
            self._model.value = OWN

    memory = name_control(tuple(MEMORIES), "The memory of one GPU, one of `MEMORIES`.")
    recipe = name_control(tuple(PRECISION_RECIPES), "Optimizer and precision, one of `PRECISION_RECIPES`.")
    gpus = number_control(GPUS, "The number of data-parallel GPUs, a power of two from 1 to 1024.")

    @property
    def reserve(self) -> int:
        """Per cent of a GPU's memory that is kept free, 0 to 40."""
        return self._reserve.value

    @reserve.setter
    def reserve(self, reserve: float) -> None:
        self._reserve.value = round(min(max(number("reserve", reserve), 0), MOST_RESERVE))

    bucket_copy = flag_control("Whether DDP's buckets hold the gradients a second time.")

    def _show_count(self, _change: Any = None) -> None:
        """Choosing a preset moves the slider of parameters to the nearest number."""
        if self._model.value != OWN:
            self._following = True
            self._count.value = nearest(COUNTS, PRESETS[self._model.value].parameters)
            self._following = False

    def _own_number(self, _change: Any) -> None:
        """Moving the slider of parameters leaves the preset."""
        if not self._following:
            self._model.value = OWN

    def _redraw(self, _change: Any = None) -> None:
        name = "" if self._model.value == OWN else self._model.value
        question = Question(
            parameters=PRESETS[name].parameters if name else self._count.value,
            memory=MEMORIES[self.memory],
            memory_name=self.memory,
            recipe=self.recipe,
            world_size=self.gpus,
            reserve=self.reserve / 100,
            gradient_as_bucket_view=not self.bucket_copy,
            name=name,
        )
        words = memory_words(question)
        self.result = Result(question, question.states, question.most_parameters, words)
        self.show(memory_scene(question), words)


def _short(count: float) -> str:
    """ "100 million", "7 billion", "1 trillion": a B would stand for bytes beside it."""
    for name, unit in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count:g}"
