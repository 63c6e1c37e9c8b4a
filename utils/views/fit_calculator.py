"""The calculator of memory: model, GPUs, batch in; what every strategy holds on a GPU out, and whether it fits.

calculator = FitCalculator("Llama-2-70B", gpus=64, memory="80 GB")
calculator                                # shows itself in a notebook
calculator.recomputation = "full"         # what choosing from the list does
calculator.result.totals["fsdp"]          # bytes on each GPU
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, SelectionSlider

from utils.theory.activations import RECOMPUTATIONS
from utils.theory.models import PRESETS
from utils.views.calculator import Calculator
from utils.views.controls import (
    GPUS,
    MEMORIES,
    MICRO_BATCHES,
    SEQUENCES,
    flag_control,
    name_control,
    named,
    number_control,
)
from utils.views.fit import HEIGHT, RECIPES, USUAL, Question, fit_scene, fit_words


@dataclass(frozen=True)
class Result:
    """What the calculator shows: bytes on one GPU by strategy, which strategies fit, and it all in words."""

    question: Question
    totals: dict[str, float]
    fitting: tuple[str, ...]
    words: str


class FitCalculator(Calculator):
    """Nine controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus, shard_size: powers of two from 1 to 1024; a shard group is never
    larger than all GPUs. memory: a name in `MEMORIES`; GB is 10^9 bytes, GiB is 2^30. recipe: a name in `fit.RECIPES`;
    "usual" takes fp32 shards for fsdp and hsdp. activations: whether they count, or model states alone. sequence: 512
    to 131,072 tokens; micro_batch: 1 to 64; recomputation: "none", "selective" or "full".
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 8,
        memory: str = "80 GB",
        recipe: str = USUAL,
        shard_size: int = 8,
        activations: bool = True,
        sequence: int = 2048,
        micro_batch: int = 1,
        recomputation: str = "none",
    ) -> None:
        super().__init__(HEIGHT, words_height=112)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 270, 50))
        self._recipe = Dropdown(
            options=[(said, name) for name, said in RECIPES.items()],
            **named("Recipe", "Optimizer and precision: bytes per parameter", 540, 50),
        )
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many data-parallel GPUs", 240, 50))
        self._shard_size = SelectionSlider(
            options=GPUS, **named("Shard group", "How many GPUs share a copy of the model, hsdp", 280, 82)
        )
        self._memory = SelectionSlider(
            options=list(MEMORIES),
            **named("GPU memory", "The memory of one GPU: GB is 10^9 bytes, GiB is 2^30", 290, 86),
        )
        self._activations = Checkbox(
            description="with activations",
            tooltip="The peak of a step, or model states alone",
            indent=False,
            layout={"width": "140px"},
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 230, 52)
        )
        self._micro_batch = SelectionSlider(
            options=MICRO_BATCHES, **named("Sequences", "Sequences at once on one GPU", 210, 74)
        )
        self._recomputation = Dropdown(
            options=list(RECOMPUTATIONS), **named("Recompute", "What backward computes again", 200, 80)
        )
        self._controls = (
            self._model,
            self._recipe,
            self._gpus,
            self._shard_size,
            self._memory,
            self._activations,
            self._sequence,
            self._micro_batch,
            self._recomputation,
        )
        self.lay_out(self._controls)
        self.model, self.recipe, self.memory = model, recipe, memory
        self.gpus, self.shard_size, self.activations = gpus, shard_size, activations
        self.sequence, self.micro_batch, self.recomputation = sequence, micro_batch, recomputation
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    recipe = name_control(tuple(RECIPES), "Optimizer and precision, one of `fit.RECIPES`.")
    gpus = number_control(GPUS, "The number of data-parallel GPUs, a power of two from 1 to 1024.")
    shard_size = number_control(
        GPUS, "The size of hsdp's shard groups that the slider stands at; at most `gpus` count."
    )
    memory = name_control(tuple(MEMORIES), "The memory of one GPU, one of `MEMORIES`.")
    activations = flag_control("Whether activations count, or model states alone.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    micro_batch = number_control(MICRO_BATCHES, "Sequences at once on one GPU, a power of two from 1 to 64.")
    recomputation = name_control(
        RECOMPUTATIONS, 'What the backward pass computes again: "none", "selective" or "full".'
    )

    def _redraw(self, _change: Any = None) -> None:
        for control in (self._sequence, self._micro_batch, self._recomputation):
            control.disabled = not self.activations
        model = PRESETS[self.model]
        question = Question(
            name=self.model,
            model=model,
            memory=MEMORIES[self.memory],
            memory_name=self.memory,
            world_size=self.gpus,
            shard_size=min(self.shard_size, self.gpus),
            recipe=self.recipe,
            with_activations=self.activations,
            sequence=min(self.sequence, model.learned_positions or self.sequence),  # no more than it has learned
            micro_batch=self.micro_batch,
            recomputation=self.recomputation,
        )
        words = fit_words(question)
        self.result = Result(question, question.totals, question.fitting, words)
        self.show(fit_scene(question), words)
