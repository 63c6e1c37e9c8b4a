"""The planner as a calculator: model, GPUs, network and batch in; every strategy, and which to take, out.

planner = Planner("Llama-3-8B", gpus=64)
planner                               # shows itself in a notebook
planner.network = 400                 # what choosing from the list does
planner.result.plan.best.strategy     # "hsdp"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import SelectionSlider

from utils.theory.planner import Plan, plan
from utils.views.controls import GPUS, named, number_control
from utils.views.job_calculator import JobCalculator
from utils.views.planner import HEIGHT, plan_scene, plan_words

PER_NODE = (1, 2, 4, 8)


@dataclass(frozen=True)
class Result:
    """What the planner shows: the plan, and it in words."""

    plan: Plan
    words: str


class Planner(JobCalculator):
    """Seven controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: a power of two from 1 to 1024. gpus_per_node: 1 to 8, at most all
    GPUs count. gpu: a name in `theory.scale.GPUS`. network: Gbit/s of a node to the others, one of `NETWORKS`.
    sequence: 512 to 131,072 tokens, no more than the model has learned positions for. sequences: of each GPU in a step,
    1 to 64; the global batch is as many times the GPUs.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-3-8B",
        gpus: int = 64,
        gpus_per_node: int = 8,
        gpu: str = "H100 80GB",
        network: int = 3200,
        sequence: int = 4096,
        sequences: int = 4,
    ) -> None:
        super().__init__(HEIGHT, 164, GPUS, "Of each GPU in a step")
        self._gpus_per_node = SelectionSlider(options=PER_NODE, **named("GPUs per node", "On each node", 270, 98))
        self.begin(
            (self._gpus_per_node,), model=model, gpus=gpus, gpus_per_node=gpus_per_node, gpu=gpu, network=network,
            sequence=sequence, sequences=sequences,
        )  # fmt: skip

    gpus = number_control(GPUS, "The number of GPUs, a power of two from 1 to 1024.")
    gpus_per_node = number_control(PER_NODE, "GPUs on each node, 1 to 8; at most all GPUs count.")

    def _redraw(self, _change: Any = None) -> None:
        found = plan(
            self.model,
            self.gpus,
            min(self.gpus_per_node, self.gpus),
            self.gpu,
            network=self.network,
            sequence=self.tokens,
            global_batch=self.gpus * self.sequences,
        )
        words = plan_words(found)
        self.result = Result(found, words)
        self.show(plan_scene(found), words)
