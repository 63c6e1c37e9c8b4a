"""The calculator of lesson 02: model, bucket cap and link in; buckets, what they hold, exposed seconds, timeline out.

calculator = OverlapCalculator("Llama-2-7B", link="InfiniBand NDR")
calculator                                   # shows itself in a notebook
calculator.cap = 100                         # MiB: what moving the slider does
calculator.result.found.step.exposed         # seconds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import Checkbox, Dropdown, SelectionSlider

from utils.theory.ddp_step import DdpStep, ddp_step
from utils.theory.flops import PEAK_FLOPS
from utils.theory.links import LINKS
from utils.theory.models import PRESETS
from utils.theory.sharing import Link
from utils.theory.units import MiB
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, flag_control, name_control, named, number_control
from utils.views.overlap import HEIGHT, overlap_scene, overlap_words

CAPS = (1, 5, 10, 25, 50, 100, 250, 500, 1000)  # MiB
TOKENS = tuple(2**power for power in range(9, 17))  # 512 to 65,536
LATENCIES = (0, 2, 5, 10, 20, 50, 100)  # microseconds
LINK_NAMES = (
    "Ethernet 10G",
    "Ethernet 25G",
    "Ethernet 100G",
    "InfiniBand HDR",
    "InfiniBand NDR",
    "NVLink 4",
    "NVLink 5",
)
BYTES = {"32 bit": 4, "16 bit": 2}
UTILIZATION = 0.4  # of the GPU's peak: a usual figure for large models


@dataclass(frozen=True)
class Result:
    """What the calculator shows, and the same in words."""

    found: DdpStep
    words: str


class OverlapCalculator(Calculator):
    """Nine controls, a sentence and a picture. One figure is kept; a move redraws it into the same image widget.

    model: a name in `theory.models.PRESETS`. cap: MiB at which a bucket closes, the first one too. link: one of
    `LINK_NAMES`, one way, for each rank. latency: microseconds of each step of a ring. ranks: 2 to 1024. tokens: of
    each rank in a step. gpu: a name in `theory.flops.PEAK_FLOPS`, at 40% of its peak. gradients: "32 bit" or "16 bit".
    views: gradient_as_bucket_view. A number out of range becomes the nearest that the control offers; an unknown name
    raises ValueError.
    """

    def __init__(
        self,
        model: str = "Llama-2-7B",
        cap: int = 25,
        link: str = "InfiniBand NDR",
        latency: int = 5,
        ranks: int = 64,
        tokens: int = 4096,
        gpu: str = "H100",
        gradients: str = "16 bit",
        views: bool = False,
    ) -> None:
        super().__init__(HEIGHT, words_height=88)
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 260, 50))
        self._gpu = Dropdown(options=list(PEAK_FLOPS), **named("GPU", "Which GPU, at 40% of its peak", 150, 36))
        self._gradients = Dropdown(options=list(BYTES), **named("Gradients", "Precision of what is reduced", 170, 70))
        self._link = Dropdown(options=list(LINK_NAMES), **named("Link", "What joins the ranks", 210, 40))
        self._cap = SelectionSlider(
            options=[(f"{cap} MiB", cap) for cap in CAPS], **named("Cap", "Size at which a bucket closes", 260, 36)
        )
        self._latency = SelectionSlider(
            options=[(f"{us} µs", us) for us in LATENCIES], **named("Latency", "Of each step of a ring", 260, 58)
        )
        self._ranks = SelectionSlider(options=GPUS[1:], **named("Ranks", "How many data-parallel ranks", 240, 46))
        self._tokens = SelectionSlider(
            options=[(f"{t:,}", t) for t in TOKENS], **named("Tokens", "Of each rank in a step", 270, 52)
        )
        self._views = Checkbox(
            description="gradient_as_bucket_view",
            tooltip="The gradients are views of the buckets",
            indent=False,
            layout={"width": "210px"},
        )
        self._controls = (
            self._model,
            self._gpu,
            self._gradients,
            self._link,
            self._cap,
            self._latency,
            self._ranks,
            self._tokens,
            self._views,
        )
        self.lay_out(self._controls)
        self.model, self.gpu, self.gradients, self.link = model, gpu, gradients, link
        self.cap, self.latency, self.ranks, self.tokens, self.views = cap, latency, ranks, tokens, views
        for control in self._controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpu = name_control(tuple(PEAK_FLOPS), "A name in `theory.flops.PEAK_FLOPS`.")
    gradients = name_control(tuple(BYTES), '"32 bit" or "16 bit".')
    link = name_control(LINK_NAMES, "One of `LINK_NAMES`.")
    cap = number_control(CAPS, "MiB at which a bucket closes.")
    latency = number_control(LATENCIES, "Microseconds of each step of a ring.")
    ranks = number_control(GPUS[1:], "The number of data-parallel ranks, a power of two from 2 to 1024.")
    tokens = number_control(TOKENS, "Tokens of each rank in a step, a power of two from 512 to 65,536.")
    views = flag_control("Whether the gradients are views of the buckets.")

    def _redraw(self, _change: Any = None) -> None:
        found = ddp_step(
            PRESETS[self.model],
            self.ranks,
            Link(LINKS[self.link].one_way, self.latency * 1e-6),
            self.tokens,
            UTILIZATION * PEAK_FLOPS[self.gpu],
            self.cap * MiB,
            BYTES[self.gradients],
        )
        words = overlap_words(found, self.views, f"{self.model} on {self.ranks} ranks over {self.link}")
        self.result = Result(found, words)
        self.show(overlap_scene(found, self.views, f"{self.model}: one step of DDP, simulated"), words)
