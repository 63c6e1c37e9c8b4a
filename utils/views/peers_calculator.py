"""The calculator of chapter 04: one job, asked of every calculator, and why two of them disagree.

calculator = PeersCalculator("Llama-2-7B", gpus=8, stage=2)
calculator                                  # shows itself in a notebook
calculator.first = "EleutherAI"             # what choosing from the list does
calculator.result.explanation.difference    # bytes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, SelectionSlider

from utils.theory.activations import activation_bytes
from utils.theory.explain import Estimate, Explanation
from utils.theory.models import PRESETS
from utils.theory.peers import STAGES
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, MICRO_BATCHES, SEQUENCES, flag_control, name_control, named, number_control
from utils.views.peers import HEIGHT, Question, peers_scene, peers_words


@dataclass(frozen=True)
class Result:
    """What the calculator shows: every answer, why two of them disagree (None where one has no answer), in words."""

    question: Question
    estimates: dict[str, Estimate]
    explanation: Explanation | None
    words: str


class PeersCalculator(Calculator):
    """Eight controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: powers of two from 1 to 1024. stage: of ZeRO, 0 to 3. sequence: 512
    to 131,072 tokens; micro_batch: 1 to 64. activations: whether this suite's answer counts them. first, second: names
    in `theory.peers.STAGES`.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 8,
        stage: int = 2,
        sequence: int = 4096,
        micro_batch: int = 1,
        activations: bool = False,
        first: str = "DeepSpeed",
        second: str = "this suite",
    ) -> None:
        super().__init__(HEIGHT, words_height=170)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 270, 50))
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many data-parallel GPUs", 240, 50))
        self._stage = SelectionSlider(
            options=[("0 (none)", 0), ("1", 1), ("2", 2), ("3", 3)], **named("ZeRO stage", "Which stage", 260, 78)
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 240, 52)
        )
        self._micro_batch = SelectionSlider(
            options=MICRO_BATCHES, **named("Sequences", "Sequences at once on one GPU", 230, 74)
        )
        self._activations = Checkbox(
            description="this suite counts activations",
            tooltip="Whether this suite's answer has activations in it",
            indent=False,
            layout={"width": "230px"},
        )
        self._first = Dropdown(options=list(STAGES), **named("Why does", "The first of two calculators", 290, 70))
        self._second = Dropdown(options=list(STAGES), **named("differ from", "The second of them", 300, 78))
        self._controls = (
            self._model,
            self._gpus,
            self._stage,
            self._sequence,
            self._micro_batch,
            self._activations,
            self._first,
            self._second,
        )
        self.lay_out(self._controls)
        self.model, self.gpus, self.stage = model, gpus, stage
        self.sequence, self.micro_batch, self.activations = sequence, micro_batch, activations
        self.first, self.second = first, second
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(GPUS, "The number of data-parallel GPUs, a power of two from 1 to 1024.")
    stage = number_control((0, 1, 2, 3), "ZeRO's stage, 0 (plain data parallelism) to 3.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    micro_batch = number_control(MICRO_BATCHES, "Sequences at once on one GPU, a power of two from 1 to 64.")
    activations = flag_control("Whether this suite's answer counts activations.")
    first = name_control(
        tuple(STAGES), "The first of the two calculators that are compared, one of `theory.peers.STAGES`."
    )
    second = name_control(tuple(STAGES), "The second of them.")

    def _redraw(self, _change: Any = None) -> None:
        model = PRESETS[self.model]
        sequence = min(self.sequence, model.learned_positions or self.sequence)  # no more than it has learned
        kept = activation_bytes(model, sequence, self.micro_batch).total if self.activations else 0
        question = Question(
            name=self.model,
            model=model,
            world_size=self.gpus,
            stage=self.stage,
            sequence=sequence,
            micro_batch=self.micro_batch,
            activations=kept,
            first=self.first,
            second=self.second,
        )
        words = peers_words(question)
        self.result = Result(question, question.estimates, question.explanation, words)
        self.show(peers_scene(question), words)
