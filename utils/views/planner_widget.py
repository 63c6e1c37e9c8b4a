"""The planner as a calculator: model, GPUs, network and batch in; every strategy, and which to take, out.

planner = Planner("Llama-3-8B", gpus=64)
planner                               # shows itself in a notebook
planner.network = 400                 # what choosing from the list does
planner.result.plan.best.strategy     # "hsdp"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.models import PRESETS
from utils.theory.planner import Plan, plan
from utils.theory.scale.hardware import GPUS as TYPES
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, MICRO_BATCHES, SEQUENCES, name_control, named, number_control
from utils.views.planner import HEIGHT, plan_scene, plan_words

NETWORKS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)  # Gbit/s of a node
PER_NODE = (1, 2, 4, 8)


@dataclass(frozen=True)
class Result:
    """What the planner shows: the plan, and it in words."""

    plan: Plan
    words: str


class Planner(Calculator):
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
        super().__init__(HEIGHT, words_height=164)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 250, 50))
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many GPUs, in all", 240, 46))
        self._gpus_per_node = SelectionSlider(options=PER_NODE, **named("GPUs per node", "On each node", 270, 98))
        self._gpu = Dropdown(options=list(TYPES), **named("GPU", "Its type, and so its memory and links", 190, 40))
        self._network = SelectionSlider(
            options=[(f"{rate:,}", rate) for rate in NETWORKS],
            **named("Network, Gbit/s", "What a node has to the others, all its cards together", 280, 106),
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 230, 52)
        )
        self._sequences = SelectionSlider(
            options=MICRO_BATCHES, **named("Sequences per GPU", "Of each GPU in a step", 308, 132)
        )
        controls = (
            self._model,
            self._gpus,
            self._gpus_per_node,
            self._gpu,
            self._network,
            self._sequence,
            self._sequences,
        )
        self.lay_out(controls)
        self.model, self.gpus, self.gpus_per_node, self.gpu = model, gpus, gpus_per_node, gpu
        self.network, self.sequence, self.sequences = network, sequence, sequences
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(GPUS, "The number of GPUs, a power of two from 1 to 1024.")
    gpus_per_node = number_control(PER_NODE, "GPUs on each node, 1 to 8; at most all GPUs count.")
    gpu = name_control(tuple(TYPES), "The type of GPU, one of `theory.scale.GPUS`.")
    network = number_control(NETWORKS, "Gbit/s of a node to the others, one of `NETWORKS`.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    sequences = number_control(MICRO_BATCHES, "Sequences of each GPU in a step, a power of two from 1 to 64.")

    def _redraw(self, _change: Any = None) -> None:
        found = plan(
            self.model,
            self.gpus,
            min(self.gpus_per_node, self.gpus),
            self.gpu,
            network=self.network,
            sequence=min(self.sequence, PRESETS[self.model].learned_positions or self.sequence),
            global_batch=self.gpus * self.sequences,
        )
        words = plan_words(found)
        self.result = Result(found, words)
        self.show(plan_scene(found), words)
