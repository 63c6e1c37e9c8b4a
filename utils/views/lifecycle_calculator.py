"""The calculator of lesson 05: model, GPUs, units, prefetch, precision in; parameters over a step of FSDP out.

calculator = LifecycleCalculator("Llama-2-7B", gpus=64)
calculator                               # shows itself in a notebook
calculator.layers = 4                    # layers in a unit: what moving the slider does
calculator.result.law.peak.bytes         # bytes of parameters on each GPU, at most
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Dropdown, IntSlider, SelectionSlider

from utils.theory.lifecycle import Lifecycle, lifecycle
from utils.theory.models import PRESETS
from utils.theory.units import GB
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, name_control, named, number, number_control
from utils.views.lifecycle_curve import Curve, curve_height, curve_scene

LAYERS = (1, 2, 4, 8, 16)  # in a unit
MOST_AHEAD = 4
#: (bytes of a parameter in a shard, in a whole copy)
PRECISIONS = {"fp32": (4, 4), "fp32 shards, bf16 copies": (4, 2), "bf16": (2, 2)}
RESHARDING = {"freed after forward": True, "kept after forward": False}


@dataclass(frozen=True)
class Result:
    """What the calculator shows, and the same in words. units: how many there are beside the root."""

    law: Lifecycle
    units: int
    words: str


class LifecycleCalculator(Calculator):
    """Six controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: a power of two from 2 to 1024. layers: in a unit, one of `LAYERS`.
    ahead: units gathered ahead, in forward and backward, 0 to 4. precision: a name in `PRECISIONS`. resharding: a name
    in `RESHARDING`. A number out of range becomes the nearest that the control offers; an unknown name raises
    ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 64,
        layers: int = 1,
        ahead: int = 1,
        precision: str = "fp32 shards, bf16 copies",
        resharding: str = "freed after forward",
    ) -> None:
        super().__init__(curve_height(1), words_height=72)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 270, 50))
        self._gpus = SelectionSlider(options=GPUS[1:], **named("GPUs", "How many GPUs share the model", 240, 50))
        self._precision = Dropdown(options=list(PRECISIONS), **named("Precision", "Of shards and copies", 280, 66))
        self._layers = SelectionSlider(options=LAYERS, **named("Layers in a unit", "How many", 280, 104))
        self._ahead = IntSlider(min=0, max=MOST_AHEAD, **named("Units ahead", "Gathered before their turn", 260, 80))
        self._resharding = Dropdown(options=list(RESHARDING), **named("Units are", "reshard_after_forward", 240, 60))
        controls = (self._model, self._gpus, self._precision, self._layers, self._ahead, self._resharding)
        self.lay_out(controls)
        self.model, self.gpus, self.precision = model, gpus, precision
        self.layers, self.ahead, self.resharding = layers, ahead, resharding
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(GPUS[1:], "The number of GPUs, a power of two from 2 to 1024.")
    precision = name_control(tuple(PRECISIONS), "Of shards and whole copies, one of `PRECISIONS`.")
    layers = number_control(LAYERS, "Layers in a unit.")
    resharding = name_control(tuple(RESHARDING), "What happens to a unit after its forward, one of `RESHARDING`.")

    @property
    def ahead(self) -> int:
        """Units gathered ahead, 0 to 4."""
        return self._ahead.value

    @ahead.setter
    def ahead(self, ahead: float) -> None:
        self._ahead.value = round(min(max(number("ahead", ahead), 0), MOST_AHEAD))

    def _redraw(self, _change: Any = None) -> None:
        model, layers = PRESETS[self.model], self.layers
        counts = [min(layers, model.layers - first) for first in range(0, model.layers, layers)]
        shard_bytes, gathered_bytes = PRECISIONS[self.precision]
        law = lifecycle(
            [count * model.parameters_per_layer for count in counts],
            self.gpus,
            root=model.parameters - model.layers * model.parameters_per_layer,
            reshard=RESHARDING[self.resharding],
            forward_prefetch=self.ahead,
            backward_prefetch=self.ahead,
            shard_bytes=shard_bytes,
            gathered_bytes=gathered_bytes,
        )
        words = self._in_words(law, len(counts))
        self.result = Result(law, len(counts), words)
        self.show(curve_scene([Curve("", law)], f"{self.model}: parameters on each GPU, as shares of all"), words)

    def _in_words(self, law: Lifecycle, units: int) -> str:
        rest, peak, root = law.at_rest, law.peak.bytes, law.events[0].gathered
        again = 2 if RESHARDING[self.resharding] else 1
        return (
            f"{self.model} on {self.gpus} GPUs, {units} units and the root, {self.precision}: "
            f"{_gb(rest)} of parameters at rest, at most {_gb(peak)}, first when {law.peak.label}: "
            f"{_gb(peak - rest)} of it whole, the root's {_gb(root)} among them. "
            f"Gathers in a step: {again * units + 1}, {_gb(law.events[1].gathered - root)} for a unit."
        )


def _gb(size: float) -> str:
    return f"{size / GB:.3g} GB"
