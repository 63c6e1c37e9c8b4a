"""The calculator of hybrid jobs: units of tensor x pipeline x context GPUs, data parallelism around them.

calculator = UnitCalculator("Llama-3-70B", gpus=64, tensor=8)
calculator                               # shows itself in a notebook
calculator.pipeline = 4                  # what moving the slider does
calculator.result.chosen.unit_bytes      # bytes that a unit sends to the others in a step
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.models import PRESETS
from utils.theory.planner import HybridJob
from utils.theory.scale.hardware import GPUS as TYPES
from utils.views.calculator import Calculator
from utils.views.controls import MICRO_BATCHES, SEQUENCES, name_control, named, number_control
from utils.views.planner_units import HEIGHT, PIPELINES, TENSORS, UnitQuestion, units_scene, units_words
from utils.views.planner_widget import NETWORKS

MANY_GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
CONTEXTS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Result:
    """What the calculator shows: the chosen unit, all units, the fastest that fits (None: none does), and words."""

    chosen: HybridJob
    jobs: tuple[HybridJob, ...]
    best: HybridJob | None
    words: str


class UnitCalculator(Calculator):
    """Nine controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: 8 to 1024, on nodes of 8. tensor, pipeline, context: of a unit; what
    the model's heads and layers or the GPUs do not allow becomes the nearest unit that they do. gpu: a name in
    `theory.scale.GPUS`. network: Gbit/s of a node. sequence: tokens. sequences: of a step, for each GPU.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-3-70B",
        gpus: int = 64,
        tensor: int = 8,
        pipeline: int = 1,
        context: int = 1,
        gpu: str = "H100 80GB",
        network: int = 3200,
        sequence: int = 4096,
        sequences: int = 2,
    ) -> None:
        super().__init__(HEIGHT, words_height=112)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 250, 50))
        self._gpus = SelectionSlider(options=MANY_GPUS, **named("GPUs", "How many GPUs, in all", 240, 46))
        self._tensor = SelectionSlider(options=TENSORS, **named("Tensor", "GPUs that share each layer", 210, 54))
        self._pipeline = SelectionSlider(options=PIPELINES, **named("Pipeline", "Stages of layers", 210, 60))
        self._context = SelectionSlider(options=CONTEXTS, **named("Context", "GPUs that share each sequence", 210, 58))
        self._gpu = Dropdown(options=list(TYPES), **named("GPU", "Its type, and so its memory and links", 190, 40))
        self._network = SelectionSlider(
            options=[(f"{rate:,}", rate) for rate in NETWORKS],
            **named("Network, Gbit/s", "What a node has to the others, all its cards together", 280, 106),
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 230, 52)
        )
        self._sequences = SelectionSlider(
            options=MICRO_BATCHES, **named("Sequences per GPU", "Of a step, divided by the GPUs", 308, 132)
        )
        controls = (
            self._model,
            self._gpus,
            self._tensor,
            self._pipeline,
            self._context,
            self._gpu,
            self._network,
            self._sequence,
            self._sequences,
        )
        self.lay_out(controls)
        self.model, self.gpus, self.gpu, self.network = model, gpus, gpu, network
        self.tensor, self.pipeline, self.context = tensor, pipeline, context
        self.sequence, self.sequences = sequence, sequences
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(MANY_GPUS, "The number of GPUs, a power of two from 8 to 1024.")
    tensor = number_control(TENSORS, "GPUs that share each layer, 1 to 8.")
    pipeline = number_control(PIPELINES, "Stages of layers, 1 to 8.")
    context = number_control(CONTEXTS, "GPUs that share each sequence, 1 to 8.")
    gpu = name_control(tuple(TYPES), "The type of GPU, one of `theory.scale.GPUS`.")
    network = number_control(NETWORKS, "Gbit/s of a node to the others, one of `NETWORKS`.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    sequences = number_control(MICRO_BATCHES, "Sequences of a step for each GPU, a power of two from 1 to 64.")

    def _redraw(self, _change: Any = None) -> None:
        question = UnitQuestion(
            self.model,
            self.gpus,
            self.tensor,
            self.pipeline,
            self.context,
            self.gpu,
            self.network,
            min(self.sequence, PRESETS[self.model].learned_positions or self.sequence),
            self.sequences,
        )
        words = units_words(question)
        self.result = Result(question.chosen, question.jobs, question.best, words)
        self.show(units_scene(question), words)
