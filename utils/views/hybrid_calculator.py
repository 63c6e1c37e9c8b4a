"""The calculator of lesson 06: model, nodes, shard group and both links in; memory, bytes, time and what binds out.

calculator = HybridCalculator("Llama-2-7B", nodes=8)
calculator                             # shows itself in a notebook
calculator.shard_size = 64             # what moving the slider does
calculator.result.chosen.binds         # "compute", "memory", "link" (inside a node) or "across"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, SelectionSlider

from utils.theory.hybrid import Hybrid, shard_sizes
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.views.calculator import Calculator
from utils.views.controls import MEMORIES, name_control, named, nearest, number_control
from utils.views.hybrid import HEIGHT, Question, hybrid_scene, hybrid_words

NODES = tuple(2**power for power in range(1, 8))  # 2 to 128
PER_NODE = (1, 2, 4, 8)
SHARD_SIZES = tuple(2**power for power in range(11))  # 1 to 1024
INSIDE = ("NVLink 3", "NVLink 4", "NVLink 5", "PCIe 4 x16", "PCIe 5 x16")
ACROSS = (
    "Ethernet 10G",
    "Ethernet 25G",
    "Ethernet 100G",
    "InfiniBand NDR",
    "EFA v1, p4d and p4de",
    "8 x InfiniBand NDR, DGX H100",
)


@dataclass(frozen=True)
class Result:
    """What the calculator shows: the chosen group, all groups, the fastest that fits (None: none does), and words."""

    chosen: Hybrid
    choices: tuple[Hybrid, ...]
    best: Hybrid | None
    words: str


class HybridCalculator(Calculator):
    """Seven controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. nodes: 2 to 128. gpus_per_node: 1 to 8. shard_size: 1 to 1024, all powers
    of two; at most all GPUs count. inside: a name in `INSIDE`, of what a GPU has to the others on its node. across: one
    in `ACROSS`, of what a node has to the others. memory: a name in `MEMORIES`, of one GPU.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        nodes: int = 8,
        gpus_per_node: int = 8,
        shard_size: int = 8,
        inside: str = "NVLink 4",
        across: str = "InfiniBand NDR",
        memory: str = "80 GB",
    ) -> None:
        super().__init__(HEIGHT, words_height=96)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 250, 50))
        self._nodes = SelectionSlider(options=NODES, **named("Nodes", "How many nodes", 230, 46))
        self._gpus_per_node = SelectionSlider(options=PER_NODE, **named("GPUs per node", "On each node", 270, 98))
        self._shard_size = SelectionSlider(
            options=SHARD_SIZES, **named("Shard group", "How many GPUs share one copy of the model", 300, 84)
        )
        self._inside = Dropdown(options=INSIDE, **named("Inside", "A GPU's link to the others on its node", 190, 50))
        self._across = Dropdown(options=ACROSS, **named("Between", "A node's link to the others", 290, 60))
        self._memory = SelectionSlider(
            options=list(MEMORIES), **named("GPU memory", "GB is 10^9 bytes, GiB is 2^30", 300, 86)
        )
        controls = (
            self._model,
            self._nodes,
            self._gpus_per_node,
            self._shard_size,
            self._inside,
            self._across,
            self._memory,
        )
        self.lay_out(controls)
        self.model, self.nodes, self.gpus_per_node, self.shard_size = model, nodes, gpus_per_node, shard_size
        self.inside, self.across, self.memory = inside, across, memory
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    nodes = number_control(NODES, "The number of nodes, a power of two from 2 to 128.")
    gpus_per_node = number_control(PER_NODE, "GPUs on each node, 1 to 8.")
    shard_size = number_control(SHARD_SIZES, "The shard group that the slider stands at; at most all GPUs count.")
    inside = name_control(INSIDE, "A GPU's link to the others on its node, one of `INSIDE`.")
    across = name_control(ACROSS, "A node's link to the others, one of `ACROSS`.")
    memory = name_control(tuple(MEMORIES), "The memory of one GPU, one of `MEMORIES`.")

    def _redraw(self, _change: Any = None) -> None:
        question = Question(
            name=self.model,
            nodes=self.nodes,
            gpus_per_node=self.gpus_per_node,
            shard_size=nearest(sorted(shard_sizes(self.nodes, self.gpus_per_node)), self.shard_size),
            inside=LINKS[self.inside],
            across=LINKS[self.across],
            memory=MEMORIES[self.memory],
            memory_name=self.memory,
        )
        words = hybrid_words(question)
        self.result = Result(question.chosen, question.choices, question.best, words)
        self.show(hybrid_scene(question), words)
