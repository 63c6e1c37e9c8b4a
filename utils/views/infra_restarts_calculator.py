"""The calculator of the control plane: GPUs, failures, checkpoint and restart in; steps lost and time lost out.

calculator = RestartsCalculator(gpus=16_384, every=100)
calculator                         # shows itself in a notebook
calculator.every = 20              # what moving the slider does
calculator.result.loss.lost        # share of the time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipywidgets import SelectionSlider

from utils.theory.restarts import LLAMA_3_GPU_HOURS, Loss
from utils.views.calculator import Calculator
from utils.views.controls import named, number_control
from utils.views.infra_restarts import HEIGHT, SCALES, Question, restarts_scene, restarts_words

GPU_HOURS = (5_000, 10_000, 20_000, round(LLAMA_3_GPU_HOURS), 100_000, 200_000)
CHECKPOINTS = (1, 2, 5, 10, 30, 60, 120, 300)  # seconds
RESTARTS = (0, 60, 300, 600, 1800)  # seconds
STEPS = (0.1, 0.5, 1, 2, 5, 10, 20, 60)  # seconds
EVERY = tuple(step * 10**power for power in range(4) for step in (1, 2, 5))  # 1 to 5,000 steps


@dataclass(frozen=True)
class Result:
    """What is shown: the question, what the chosen interval and Young's lose at that scale, and both in words."""

    question: Question
    loss: Loss
    best: Loss
    words: str


class RestartsCalculator(Calculator):
    """Six controls, a sentence and a picture.

    gpus: 64 to 16,384, in steps of four. gpu_hours: hours between two failures of one GPU. checkpoint: seconds for
    which one stops training. restart: seconds from a failure to the next step. step: seconds. every: steps between
    checkpoints, 1 to 5,000. A number out of range becomes the nearest that the control offers.
    """

    def __init__(
        self,
        gpus: int = 16_384,
        every: int = 100,
        gpu_hours: float = GPU_HOURS[3],
        checkpoint: float = 60,
        restart: float = 300,
        step: float = 10,
    ) -> None:
        super().__init__(HEIGHT, words_height=96)
        self._gpus = SelectionSlider(options=SCALES, **named("GPUs", "How many GPUs the job has", 250, 44))
        self._every = SelectionSlider(options=EVERY, **named("Checkpoint every", "Steps", 296, 118))
        self._step = SelectionSlider(options=STEPS, **named("Step, s", "Seconds of a step", 230, 56))
        self._gpu_hours = SelectionSlider(
            options=GPU_HOURS, **named("Hours per failure of a GPU", "50,677: Llama 3's run", 330, 170)
        )
        self._checkpoint = SelectionSlider(
            options=CHECKPOINTS, **named("Stall, s", "For which a checkpoint stops training", 220, 56)
        )
        self._restart = SelectionSlider(
            options=RESTARTS, **named("Restart, s", "From a failure to the next step", 230, 68)
        )
        controls = (self._gpus, self._every, self._step, self._gpu_hours, self._checkpoint, self._restart)
        self.lay_out(controls)
        self.gpus, self.every, self.step = gpus, every, step
        self.gpu_hours, self.checkpoint, self.restart = gpu_hours, checkpoint, restart
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()

    gpus = number_control(SCALES, "How many GPUs the job has, 64 to 16,384.")
    every = number_control(EVERY, "Steps between checkpoints, 1 to 5,000.")
    step = number_control(STEPS, "Seconds of a step, 0.1 to 60.")
    gpu_hours = number_control(GPU_HOURS, "Hours between two failures of one GPU, 5,000 to 200,000.")
    checkpoint = number_control(CHECKPOINTS, "Seconds for which a checkpoint stops training, 1 to 300.")
    restart = number_control(RESTARTS, "Seconds from a failure to the next step, 0 to 1,800.")

    def _redraw(self, _change: Any = None) -> None:
        asked = Question(self.gpus, self.gpu_hours, self.checkpoint, self.restart, self.step, self.every)
        words = restarts_words(asked)
        self.result = Result(asked, asked.loss(self.gpus), asked.best(self.gpus), words)
        self.show(restarts_scene(asked), words)
