"""The calculator of lesson 05: a model, a cluster, units and switches in; memory over a step and its time line out.

calculator = LifecycleCalculator("Llama-2-70B", gpus=64)
calculator                               # shows itself in a notebook
calculator.layers = 4                    # layers in a unit: what moving the slider does
calculator.result.step.peak.total        # bytes on each GPU, at most
calculator.result.law.peak.bytes         # of parameters alone
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, IntSlider, SelectionSlider

from utils.theory.flops import PEAK_FLOPS
from utils.theory.fsdp_step import PRECISIONS, FsdpStep, fsdp_step
from utils.theory.lifecycle import Lifecycle, lifecycle
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.views.calculator import Calculator
from utils.views.controls import (
    GPUS,
    MEMORIES,
    MICRO_BATCHES,
    SEQUENCES,
    flag_control,
    name_control,
    named,
    number,
    number_control,
)
from utils.views.fsdp_step import HEIGHT, Shown, fsdp_step_scene, fsdp_step_words
from utils.views.overlap_calculator import LINK_NAMES, UTILIZATION

LAYERS = (1, 2, 4, 8, 16)  # in a unit
MOST_AHEAD = 4
LATENCY = 5e-6  # seconds of each step of a ring
RESHARDING = {"freed after forward": True, "kept after forward": False}


@dataclass(frozen=True)
class Result:
    """What the calculator shows, and the same in words. law: of the parameters alone. units: beside the root."""

    step: FsdpStep
    law: Lifecycle
    units: int
    words: str


class LifecycleCalculator(Calculator):
    """Twelve controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. gpus: a power of two from 2 to 1024. layers: in a unit, one of `LAYERS`.
    ahead: units gathered ahead, in forward and backward, 0 to 4. precision: a name in `theory.fsdp_step.PRECISIONS`.
    resharding: a name in `RESHARDING`. recompute: whether backward computes layers again. sequence: 512 to 131,072
    tokens, no more than the model has learned; micro_batch: 1 to 64 sequences. gpu: a name in
    `theory.flops.PEAK_FLOPS`, at 40% of its peak. link: one of `LINK_NAMES`, one way, for each rank, with 5 µs for each
    step of a ring. memory: a name in `MEMORIES`.
    A number out of range becomes the nearest that the control offers; an unknown name raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        gpus: int = 64,
        layers: int = 1,
        ahead: int = 1,
        precision: str = "fp32 shards, bf16 copies",
        resharding: str = "freed after forward",
        recompute: bool = False,
        sequence: int = 2048,
        micro_batch: int = 1,
        gpu: str = "H100",
        link: str = "InfiniBand NDR",
        memory: str = "80 GB",
    ) -> None:
        super().__init__(HEIGHT, words_height=112)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 255, 50))
        self._precision = Dropdown(options=list(PRECISIONS), **named("Precision", "Of shards and copies", 290, 66))
        self._resharding = Dropdown(options=list(RESHARDING), **named("Units are", "reshard_after_forward", 240, 60))
        self._gpus = SelectionSlider(options=GPUS[1:], **named("GPUs", "How many GPUs share the model", 205, 42))
        self._layers = SelectionSlider(options=LAYERS, **named("Layers in a unit", "How many", 235, 102))
        self._ahead = IntSlider(min=0, max=MOST_AHEAD, **named("Units ahead", "Gathered before their turn", 215, 80))
        self._recompute = Checkbox(
            description="recompute",
            tooltip="Keep each layer's input alone, and compute it again in the backward pass",
            indent=False,
            layout={"width": "110px"},
        )
        self._sequence = SelectionSlider(
            options=[(f"{size:,}", size) for size in SEQUENCES], **named("Tokens", "Tokens in a sequence", 225, 52)
        )
        self._micro_batch = SelectionSlider(
            options=MICRO_BATCHES, **named("Sequences", "Sequences at once on one GPU", 205, 74)
        )
        self._memory = SelectionSlider(
            options=list(MEMORIES), **named("GPU memory", "GB is 10^9 bytes, GiB is 2^30", 270, 86)
        )
        self._gpu = Dropdown(options=list(PEAK_FLOPS), **named("GPU", "Which GPU, at 40% of its peak", 150, 36))
        self._link = Dropdown(options=list(LINK_NAMES), **named("Link", "What joins the GPUs", 210, 40))
        self._controls = (
            self._model,
            self._precision,
            self._resharding,
            self._gpus,
            self._layers,
            self._ahead,
            self._recompute,
            self._sequence,
            self._micro_batch,
            self._memory,
            self._gpu,
            self._link,
        )
        self.lay_out(self._controls)
        self.model, self.precision, self.resharding = model, precision, resharding
        self.gpus, self.layers, self.ahead, self.recompute = gpus, layers, ahead, recompute
        self.sequence, self.micro_batch, self.memory, self.gpu, self.link = sequence, micro_batch, memory, gpu, link
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    shown: Shown | None = None  # what the picture shows

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(GPUS[1:], "The number of GPUs, a power of two from 2 to 1024.")
    precision = name_control(tuple(PRECISIONS), "Of shards and whole copies, one of `PRECISIONS`.")
    layers = number_control(LAYERS, "Layers in a unit.")
    resharding = name_control(tuple(RESHARDING), "What happens to a unit after its forward, one of `RESHARDING`.")
    recompute = flag_control("Whether layers are computed again in the backward pass.")
    sequence = number_control(SEQUENCES, "Tokens in a sequence, a power of two from 512 to 131,072.")
    micro_batch = number_control(MICRO_BATCHES, "Sequences at once on one GPU, a power of two from 1 to 64.")
    memory = name_control(tuple(MEMORIES), "The memory of one GPU, one of `MEMORIES`.")
    gpu = name_control(tuple(PEAK_FLOPS), "A name in `theory.flops.PEAK_FLOPS`.")
    link = name_control(LINK_NAMES, "One of `LINK_NAMES`.")

    @property
    def ahead(self) -> int:
        """Units gathered ahead, 0 to 4."""
        return self._ahead.value

    @ahead.setter
    def ahead(self, ahead: float) -> None:
        self._ahead.value = round(min(max(number("ahead", ahead), 0), MOST_AHEAD))

    def _redraw(self, _change: Any = None) -> None:
        model = PRESETS[self.model]
        sequence = min(self.sequence, model.learned_positions or self.sequence)  # no more than it has learned
        step = fsdp_step(
            model,
            self.gpus,
            Link(LINKS[self.link].one_way, LATENCY),
            UTILIZATION * PEAK_FLOPS[self.gpu],
            sequence,
            self.micro_batch,
            layers_in_unit=self.layers,
            ahead=self.ahead,
            reshard=RESHARDING[self.resharding],
            precision=self.precision,
            recompute=self.recompute,
        )
        law = self._law()
        self.shown = shown = Shown(
            f"{self.model} on {self.gpus} GPUs, {step.units} unit{'s' if step.units > 1 else ''} and the root, "
            f"{self.micro_batch} x {sequence:,} tokens",
            step,
            law,
            MEMORIES[self.memory],
            self.memory,
            f"On {self.gpu} at {100 * UTILIZATION:.0f}%, {self.link}",
        )
        words = fsdp_step_words(shown)
        self.result = Result(step, law, step.units, words)
        self.show(fsdp_step_scene(shown), words)

    def _law(self) -> Lifecycle:
        """What a rank holds of the parameters alone."""
        model, precision = PRESETS[self.model], PRECISIONS[self.precision]
        counts = [min(self.layers, model.layers - first) for first in range(0, model.layers, self.layers)]
        return lifecycle(
            [count * model.parameters_per_layer for count in counts],
            self.gpus,
            root=model.parameters - model.layers * model.parameters_per_layer,
            reshard=RESHARDING[self.resharding],
            forward_prefetch=self.ahead,
            backward_prefetch=self.ahead,
            shard_bytes=precision.recipe.weights,
            gathered_bytes=precision.copies,
        )
