"""What the planner and the calculator of units have in common: the controls of a training job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipywidgets import Dropdown, SelectionSlider, Widget

from utils.theory.models import PRESETS
from utils.theory.scale.hardware import GPUS as TYPES
from utils.views.calculator import Calculator
from utils.views.controls import MICRO_BATCHES, SEQUENCES, name_control, named, number_control

NETWORKS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)  # Gbit/s of a node


class JobCalculator(Calculator):
    """Model, GPUs and their type, network, tokens and sequences. A subclass has `gpus` and its own controls, calls
    `begin`, and says in `_redraw` what is shown."""

    def __init__(self, height: int, words_height: int, gpus: Sequence[int], per_gpu: str) -> None:
        """gpus: how many the slider offers. per_gpu: what a screen reader says of the sequences."""
        super().__init__(height, words_height)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 250, 50))
        self._gpus = SelectionSlider(options=gpus, **named("GPUs", "How many GPUs, in all", 240, 46))
        self._gpu = Dropdown(options=list(TYPES), **named("GPU", "Its type, and so its memory and links", 190, 40))
        self._network = SelectionSlider(
            options=[(f"{rate:,}", rate) for rate in NETWORKS],
            **named("Network, Gbit/s", "What a node has to the others, all its cards together", 280, 106),
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 230, 52)
        )
        self._sequences = SelectionSlider(options=MICRO_BATCHES, **named("Sequences per GPU", per_gpu, 308, 132))

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpu = name_control(tuple(TYPES), "The type of GPU, one of `theory.scale.GPUS`.")
    network = number_control(NETWORKS, "Gbit/s of a node to the others, one of `NETWORKS`.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    sequences = number_control(MICRO_BATCHES, "Sequences of each GPU in a step, a power of two from 1 to 64.")

    @property
    def tokens(self) -> int:
        """Of a sequence: what is set, or all that the model has learned positions for."""
        return min(self.sequence, PRESETS[self.model].learned_positions or self.sequence)

    def begin(self, own: Sequence[Widget], **settings: Any) -> None:
        """Lay all controls out, the subclass's `own` behind the number of GPUs; set them; redraw from now on."""
        controls = (self._model, self._gpus, *own, self._gpu, self._network, self._sequence, self._sequences)
        self.lay_out(controls)
        for name, value in settings.items():
            setattr(self, name, value)
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    def _redraw(self, _change: Any = None) -> None:
        raise NotImplementedError
