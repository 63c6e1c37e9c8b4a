"""The calculator of hybrid jobs: units of tensor x pipeline x context GPUs, data parallelism around them.

calculator = UnitCalculator("Llama-3-70B", gpus=64, tensor=8)
calculator                               # shows itself in a notebook
calculator.pipeline = 4                  # what moving the slider does
calculator.result.chosen.unit_bytes      # bytes that a unit sends to the others in a step
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import SelectionSlider

from utils.theory.planner import HybridJob
from utils.views.controls import named, number_control
from utils.views.job_calculator import JobCalculator
from utils.views.planner_units import HEIGHT, PIPELINES, TENSORS, UnitQuestion, units_scene, units_words

MANY_GPUS = (8, 16, 32, 64, 128, 256, 512, 1024)
CONTEXTS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Result:
    """What the calculator shows: the chosen unit, all units, the fastest that fits (None: none does), and words."""

    chosen: HybridJob
    jobs: tuple[HybridJob, ...]
    best: HybridJob | None
    words: str


class UnitCalculator(JobCalculator):
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
        super().__init__(HEIGHT, 112, MANY_GPUS, "Of a step, divided by the GPUs")
        self._tensor = SelectionSlider(options=TENSORS, **named("Tensor", "GPUs that share each layer", 210, 54))
        self._pipeline = SelectionSlider(options=PIPELINES, **named("Pipeline", "Stages of layers", 210, 60))
        self._context = SelectionSlider(options=CONTEXTS, **named("Context", "GPUs that share each sequence", 210, 58))
        self.begin(
            (self._tensor, self._pipeline, self._context), model=model, gpus=gpus, gpu=gpu, network=network,
            tensor=tensor, pipeline=pipeline, context=context, sequence=sequence, sequences=sequences,
        )  # fmt: skip

    gpus = number_control(MANY_GPUS, "The number of GPUs, a power of two from 8 to 1024.")
    tensor = number_control(TENSORS, "GPUs that share each layer, 1 to 8.")
    pipeline = number_control(PIPELINES, "Stages of layers, 1 to 8.")
    context = number_control(CONTEXTS, "GPUs that share each sequence, 1 to 8.")

    def _redraw(self, _change: Any = None) -> None:
        question = UnitQuestion(
            self.model,
            self.gpus,
            self.tensor,
            self.pipeline,
            self.context,
            self.gpu,
            self.network,
            self.tokens,
            self.sequences,
        )
        words = units_words(question)
        self.result = Result(question.chosen, question.jobs, question.best, words)
        self.show(units_scene(question), words)
