"""Units of TP x PP x CP beside each other: memory of a GPU, what a unit sends for data parallelism, and the step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from utils.theory.planner import HybridJob, hybrid_job, placements
from utils.theory.units import format_seconds
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.palette import COMMUNICATION, COMPUTE, FAINT, INK, SMALL, TITLE, paler
from utils.views.plan_bars import TORN, in_gb, in_time, memory_bar, step_bar

TENSORS, PIPELINES = (1, 2, 4, 8), (1, 2, 4, 8)
ROW, _TOP = 24, 92
HEIGHT = _TOP + len(TENSORS) * len(PIPELINES) * ROW + 34
_LABEL, _MEMORY, _SENT, _STEP = 16, (200, 120), 400, (508, 140)
_BAR = 14


@dataclass(frozen=True)
class UnitQuestion:
    """Which unit? name: of the model. sequences: of a step, for each GPU. The others as for `hybrid_job`."""

    name: str
    gpus: int
    tensor: int
    pipeline: int
    context: int
    gpu: str
    network: float
    sequence: int
    sequences: int = 1

    @property
    def jobs(self) -> tuple[HybridJob, ...]:
        """Each unit of this context that the model and the GPUs allow, small units first; one at least."""
        return _jobs(
            self.name, self.gpus, self.context, self.gpu, self.network, self.sequence, self.sequences * self.gpus
        )

    @property
    def chosen(self) -> HybridJob:
        """The unit that was asked for, or the nearest that is allowed."""
        return min(
            self.jobs,
            key=lambda each: (
                abs(each.job.tensor.bit_length() - self.tensor.bit_length())
                + abs(each.job.pipeline.bit_length() - self.pipeline.bit_length())
            ),
        )

    @property
    def best(self) -> HybridJob | None:
        """The fastest that fits."""
        fitting = (each for each in self.jobs if each.fits)
        return min(fitting, key=lambda each: each.prediction.seconds, default=None)


@lru_cache(maxsize=4)  # another unit alone is another row of the same
def _jobs(
    name: str, gpus: int, context: int, gpu: str, network: float, sequence: int, batch: int
) -> tuple[HybridJob, ...]:
    found = []
    for tensor in TENSORS:
        for pipeline in PIPELINES:
            for parts in (context, 1):
                try:
                    found.append(
                        hybrid_job(
                            name, gpus, tensor, pipeline, parts, gpu=gpu, network=network, sequence=sequence,
                            global_batch=batch,
                        )
                    )  # fmt: skip
                except ValueError:
                    continue  # does not divide: heads, layers, GPUs
                break
    return tuple(found)


def units_words(question: UnitQuestion) -> str:
    """The chosen unit: memory, bytes, step; ranks numbered the other way round; the fastest that fits."""
    chosen, best = question.chosen, question.best
    alone = placements(chosen)
    said = f"{question.name} on {question.gpus:,} x {question.gpu}, {question.network:,.0f} Gbit/s a node: {chosen!r}. "
    if question.gpus > chosen.ask.gpus_per_node and chosen.job.tensor > 1:
        said += (
            f"Collectives alone take {format_seconds(alone['data'])} with tensor parallelism inside nodes and data "
            f"parallelism around it, {format_seconds(alone['tensor'])} the other way round. "
        )
    if best is None:
        return said + "No unit fits."
    job = best.job
    return said + (
        f"The fastest that fits: TP {job.tensor} x PP {job.pipeline} x CP {job.context}, "
        f"{format_seconds(best.prediction.seconds)}."
    )


def units_scene(question: UnitQuestion) -> Scene:
    """A row for each unit; the chosen one in bold."""
    scene, jobs = Scene(), question.jobs
    ask = jobs[0].ask
    scene.write(_LABEL, 18, f"{question.name} on {question.gpus:,} x {question.gpu}", TITLE, align="left", bold=True)
    batch = f"{ask.global_batch:,} sequences of {ask.sequence:,} tokens a step, {ask.network:,.0f} Gbit/s a node"
    scene.write(_LABEL, 40, batch, SMALL, align="left")
    (memory, wide), (step, _) = _MEMORY, _STEP
    for x, head in ((_LABEL, "units"), (memory, "memory of a GPU"), (_SENT, "a unit sends"), (step, "a step")):
        scene.write(x, 66, head, SMALL, align="left", bold=True)
    for x, style, name in ((step + 56, COMPUTE, "compute"), (step + 142, COMMUNICATION, "waiting and bubble")):
        scene.box(x, 60, 12, 12, style.colour)
        scene.write(x + 18, 66, name, SMALL, align="left")
    longest = max(each.prediction.seconds for each in jobs)
    for i, each in enumerate(jobs):
        _draw_row(scene, each, each == question.chosen, longest, _TOP + i * ROW)
    foot, limit = _TOP + len(jobs) * ROW, memory + wide / TORN
    scene.line(limit, _TOP - 14, limit, foot - 6, INK, 1.6)
    scene.write(limit, foot + 6, f"{in_gb(ask.budget)} to use", SMALL)
    scene.line(memory, _TOP - 14, memory, foot - 6, FAINT)
    return scene


def _draw_row(scene: Scene, each: HybridJob, bold: bool, longest: float, y: float) -> None:
    if bold:
        scene.box(8, y - ROW / 2, WIDTH - 16, ROW, paler("#F0E442", 0.3))
    job, fits = each.job, each.fits
    name = f"{each.units:,} of TP {job.tensor} PP {job.pipeline} CP {job.context}"
    scene.write(_LABEL, y, name, SMALL, align="left", bold=bold)
    (x, wide), (x_step, wide_step) = _MEMORY, _STEP
    memory_bar(scene, x, wide, y, _BAR, each.memory, each.ask.budget, bold, room=66)
    scene.write(_SENT, y, in_gb(each.unit_bytes), SMALL, align="left", bold=bold)
    found = each.prediction
    idle = found.exposed + found.parts["contention"] + found.parts["pipeline bubble"]
    busy, idle = ((part / longest * wide_step) for part in (found.seconds - idle, idle))
    step_bar(scene, x_step, y, _BAR, busy, idle, fits)
    said = in_time(found.seconds) if fits else f"{in_time(found.seconds)}, does not fit"
    scene.write(x_step + busy + idle + 5, y, said, SMALL, align="left", bold=bold)
