"""What failures cost at 64 to 16,384 GPUs: where the time of a job goes, with a checkpoint every so many steps."""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.restarts import HOUR, Loss, loss, mean_time_between_failures, steps_lost, young_interval
from utils.views.board import Scene
from utils.views.figure import WIDTH
from utils.views.infra_bars import Look, Row, draw_key, draw_rows
from utils.views.palette import BUFFERS, COMMUNICATION, COMPUTE, SMALL, TITLE

SCALES = (64, 256, 1024, 4096, 16_384)
HEIGHT = 330
WRITING = Look("writing checkpoints", COMMUNICATION.colour)
AGAIN = Look("steps done again", COMPUTE.colour, hatched=True)
RESTARTING = Look("restarting", BUFFERS.colour)


@dataclass(frozen=True)
class Question:
    """gpu_hours: between failures of one GPU. checkpoint_seconds: its stall. every: steps of `step_seconds` between."""

    gpus: int
    gpu_hours: float
    checkpoint_seconds: float
    restart_seconds: float
    step_seconds: float
    every: int

    def failure_seconds(self, gpus: int) -> float:
        """The mean time between failures of a job of so many GPUs."""
        return mean_time_between_failures(gpus, self.gpu_hours)

    def loss(self, gpus: int) -> Loss:
        """With the chosen interval."""
        interval = self.every * self.step_seconds
        return loss(interval, self.checkpoint_seconds, self.failure_seconds(gpus), self.restart_seconds)

    def young_steps(self, gpus: int) -> int:
        """Young's interval in whole steps, at least one."""
        interval = young_interval(self.checkpoint_seconds, self.failure_seconds(gpus))
        return max(1, round(interval / self.step_seconds))

    def best(self, gpus: int) -> Loss:
        """With Young's interval."""
        interval = self.young_steps(gpus) * self.step_seconds
        return loss(interval, self.checkpoint_seconds, self.failure_seconds(gpus), self.restart_seconds)


def restarts_words(question: Question) -> str:
    """The chosen row in words."""
    asked, failure = question, question.failure_seconds(question.gpus)
    found, best = asked.loss(asked.gpus), asked.best(asked.gpus)
    mean, most = steps_lost(asked.every)
    return (
        f"{asked.gpus:,} GPUs fail every {hours(failure)} on the average, {24 * HOUR / failure:.3g} times a day. With "
        f"a checkpoint every {asked.every:,} steps of {asked.step_seconds:g} s a failure costs {mean:,.3g} steps on "
        f"the average, {most:,} at most. Lost: {share(found.lost)} of the time; writing {share(found.writing)}, steps "
        f"done again {share(found.again)}, restarting {share(found.restarting)}. Young's interval is "
        f"{asked.young_steps(asked.gpus):,} steps, with which {share(best.lost)} is lost."
    )


def restarts_scene(question: Question) -> Scene:
    """A row for each scale, the chosen interval above Young's."""
    scene = Scene()
    title = f"Time lost, with a checkpoint every {question.every:,} steps and with Young's interval"
    scene.write(16, 20, title, TITLE, align="left", bold=True)
    draw_key(scene, 16, 46, (WRITING, AGAIN, RESTARTING))
    rows = []
    for gpus in SCALES:
        chosen = gpus == nearest(question.gpus)
        found, best = question.loss(gpus), question.best(gpus)
        rows.append(_row(f"{gpus:,} GPUs", found, f"{share(found.lost)}", chosen))
        rows.append(_row("Young", best, f"{share(best.lost)}, every {question.young_steps(gpus):,} steps", False))
    draw_rows(scene, rows, 116, 70, WIDTH - 116 - 210, pitch=24, height=15)
    scene.write(16, HEIGHT - 12, "Shares of the whole time.", SMALL, align="left")
    return scene


def nearest(gpus: int) -> int:
    """The scale in the picture that a number of GPUs belongs to."""
    return min(SCALES, key=lambda each: abs(each - gpus))


def _row(label: str, found: Loss, said: str, bold: bool) -> Row:
    segments = ((WRITING, found.writing), (AGAIN, found.again), (RESTARTING, found.restarting))
    return Row(label, segments, said, bold)


def share(part: float) -> str:
    """A share of the time: "4.2 %"."""
    return f"{100 * part:.2g} %" if part < 0.995 else "all"


def hours(seconds: float) -> str:
    """Days, hours or minutes, with three digits."""
    if seconds >= 48 * HOUR:
        return f"{seconds / HOUR / 24:.3g} days"
    return f"{seconds / HOUR:.3g} hours" if seconds >= HOUR else f"{seconds / 60:.3g} minutes"
