"""What a model eats: a step's compute beside its loading, and what a checkpoint stops."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.feed import SAMPLES, Feed, Sample, feed, most_ranks, step_with_loading, text
from utils.theory.units import GB, format_bytes
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.infra_bars import Look, Row, draw_key, draw_rows
from utils.views.palette import COMMUNICATION, COMPUTE, SMALL, TITLE
from utils.views.ring_cost import time_text

HEIGHT = 230
COMPUTING = Look("compute", COMPUTE.colour)
LOADING = Look("loading", COMMUNICATION.colour)
TEXTS = ("GPT-2", "Llama-2-7B", "Llama-2-70B")
OFFERED: dict[str, Sample] = {
    **SAMPLES,
    **{sample.name: sample for sample in (text(name, 1024 if name == "GPT-2" else 4096) for name in TEXTS)},
}


@dataclass(frozen=True)
class Question:
    """sample: what is trained on. batch: samples of one GPU in a step. store_rate: bytes per second, for all GPUs."""

    sample: Sample
    gpus: int
    gpu: str
    utilization: float
    batch: int
    store_rate: float

    @property
    def feed(self) -> Feed:
        """What all GPUs take in a second if nothing stops them."""
        return feed(self.sample, self.gpus, self.gpu, self.utilization)

    @property
    def compute(self) -> float:
        """Seconds of a step's compute."""
        return self.batch * self.gpus / self.feed.samples_per_second

    @property
    def loading(self) -> float:
        """Seconds in which the store delivers a step's samples."""
        return self.gpus * self.batch * self.sample.bytes / self.store_rate

    @property
    def step(self) -> float:
        """Seconds of a step whose batch was read during the one before."""
        return step_with_loading(self.compute, self.batch * self.sample.bytes, self.store_rate, self.gpus)

    @property
    def most(self) -> int:
        """GPUs that the store feeds before loading becomes the step."""
        return most_ranks(self.compute, self.batch * self.sample.bytes, self.store_rate)


def feed_words(question: Question) -> str:
    """Samples and bytes a second, and who waits for whom."""
    asked, eaten = question, question.feed
    if asked.loading > asked.compute:
        binds = f"loading is the step: {time_text(asked.step)}, of which compute {time_text(asked.compute)}"
    else:
        binds = f"compute is the step: {time_text(asked.step)}, in which loading takes {time_text(asked.loading)}"
    return (
        f"{asked.sample.name}, on {asked.gpus:,} {asked.gpu} at {100 * asked.utilization:g} % of their peak: "
        f"{eaten.samples_per_second:,.0f} samples a second, {rate_text(eaten.bytes_per_second)}. The store delivers "
        f"{rate_text(asked.store_rate)}: {binds}. It feeds {asked.most:,} such GPUs."
    )


def feed_scene(question: Question) -> Scene:
    """The two times beside each other, and the step with and without reading ahead."""
    asked, scene = question, Scene()
    scene.write(
        16, 20, f"A step of {asked.batch} samples on each of {asked.gpus:,} GPUs", TITLE, align="left", bold=True
    )
    scene.write(16, 42, asked.sample.name, SMALL, align="left")
    draw_key(scene, 16, 66, (COMPUTING, LOADING))
    rows = (
        Row("compute", ((COMPUTING, asked.compute),), time_text(asked.compute)),
        Row("loading", ((LOADING, asked.loading),), time_text(asked.loading)),
        Row(
            "one after the other",
            ((LOADING, asked.loading), (COMPUTING, asked.compute)),
            f"{time_text(asked.compute + asked.loading)} a step",
        ),
        Row(
            "read ahead",
            ((LOADING if asked.loading > asked.compute else COMPUTING, asked.step),),
            f"{time_text(asked.step)} a step",
            bold=True,
        ),
    )
    draw_rows(scene, rows, 156, 88, WIDTH - 156 - 150)
    return scene


def rate_text(rate: float) -> str:
    """Bytes per second: "1.2 GB/s"."""
    return f"{format_bytes(rate, binary=False, digits=2 if rate < 100 * GB else 0)}/s"
