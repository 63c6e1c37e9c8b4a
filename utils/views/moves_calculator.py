"""The calculator of traffic: model, ranks, nodes and precision in; bytes of one step out, strategy by strategy.

calculator = MovesCalculator("Llama-2-7B", gpus=64, nodes=8)
calculator                                     # shows itself in a notebook
calculator.nodes = 4                           # what moving the slider does
calculator.result.traffic["fsdp"].across       # bytes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, IntSlider, SelectionSlider

from utils.theory.models import PRESETS
from utils.theory.traffic import StepTraffic
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, flag_control, name_control, named, number, number_control
from utils.views.moves import HEIGHT, PRECISIONS, Question, moves_scene, moves_words

MOST_MICRO_BATCHES = 16
RULES = ("ring", "gloo")


@dataclass(frozen=True)
class Result:
    """What the calculator shows: what a step moves by strategy, and it all in words."""

    question: Question
    traffic: dict[str, StepTraffic]
    words: str


class MovesCalculator(Calculator):
    """Eight controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus, nodes, shard_size: powers of two from 1 to 1024; there are never
    more nodes than GPUs, nor a larger shard group. micro_batches: 1 to 16. precision: a name in `moves.PRECISIONS`.
    rules: "ring" or "gloo". root_kept: FSDP's root unit stays gathered from forward to backward.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 64,
        nodes: int = 8,
        shard_size: int = 8,
        micro_batches: int = 1,
        precision: str = "16 bit",
        rules: str = "ring",
        root_kept: bool = False,
    ) -> None:
        super().__init__(HEIGHT, words_height=132)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 270, 50))
        self._precision = Dropdown(
            options=list(PRECISIONS), **named("Precision", "Precision of what is gathered and reduced", 330, 66)
        )
        self._rules = Dropdown(
            options=[("the ring's", "ring"), ("gloo's", "gloo")],
            **named("Rules", "By whose rules the collectives move bytes", 170, 50),
        )
        self._gpus = SelectionSlider(options=GPUS, **named("Ranks", "How many data-parallel ranks", 240, 50))
        self._nodes = SelectionSlider(options=GPUS, **named("Nodes", "How many nodes share the ranks", 240, 50))
        self._shard_size = SelectionSlider(
            options=GPUS, **named("Shard group", "How many ranks share a copy of the model, hsdp", 280, 82)
        )
        self._micro_batches = IntSlider(
            min=1,
            max=MOST_MICRO_BATCHES,
            **named("Micro-batches", "How many micro-batches before each optimizer step", 320, 96),
        )
        self._root_kept = Checkbox(
            description="FSDP keeps its root unit gathered",
            tooltip="The root is not freed between forward and backward",
            indent=False,
            layout={"width": "270px"},
        )
        self._controls = (
            self._model,
            self._precision,
            self._rules,
            self._gpus,
            self._nodes,
            self._shard_size,
            self._micro_batches,
            self._root_kept,
        )
        self.lay_out(self._controls)
        self.model, self.precision, self.rules = model, precision, rules
        self.gpus, self.nodes, self.shard_size = gpus, nodes, shard_size
        self.micro_batches, self.root_kept = micro_batches, root_kept
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    precision = name_control(
        tuple(PRECISIONS), "Of gathered parameters and reduced gradients, one of `moves.PRECISIONS`."
    )
    rules = name_control(RULES, '"ring" or "gloo".')
    gpus = number_control(GPUS, "The number of data-parallel ranks, a power of two from 1 to 1024.")
    nodes = number_control(GPUS, "The number of nodes that the slider stands at; at most `gpus` of them count.")
    shard_size = number_control(
        GPUS, "The size of hsdp's shard groups that the slider stands at; at most `gpus` count."
    )

    @property
    def micro_batches(self) -> int:
        """Micro-batches before each optimizer step, 1 to 16."""
        return self._micro_batches.value

    @micro_batches.setter
    def micro_batches(self, micro_batches: float) -> None:
        within = min(max(number("micro_batches", micro_batches), 1), MOST_MICRO_BATCHES)
        self._micro_batches.value = round(within)

    root_kept = flag_control("Whether FSDP's root unit stays gathered from forward to backward.")

    def _redraw(self, _change: Any = None) -> None:
        model = PRESETS[self.model]
        question = Question(
            name=self.model,
            parameters=model.parameters,
            root_parameters=model.units[0].parameters,
            world_size=self.gpus,
            nodes=min(self.nodes, self.gpus),
            shard_size=min(self.shard_size, self.gpus),
            micro_batches=self.micro_batches,
            precision=self.precision,
            rules=self.rules,
            root_kept=self.root_kept,
        )
        words = moves_words(question)
        self.result = Result(question, question.traffic, words)
        self.show(moves_scene(question), words)
