"""The dry run with controls: model, ranks, strategy, recomputation, a button, and a bar that shows how far it is.

widget = DryRunWidget(dry_run)      # utils.runtime.dry_run.dry_run
widget                              # shows itself in a notebook
widget.gpus = 8                     # what moving the slider does
widget.start(); widget.wait()       # what pressing the button does
widget.run                          # the last DryRun

The prediction stands there at once; the trace runs in a thread, and the notebook goes on meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ipywidgets import Button, Checkbox, Dropdown, FloatProgress, Label, Layout, SelectionSlider

from utils.theory.arguments import check_choice
from utils.theory.breakdown import Breakdown, training_memory
from utils.theory.fsdp_step import PRECISIONS, memory_over_step
from utils.theory.models import PRESETS
from utils.theory.moments_sharded import Units
from utils.theory.units import format_bytes
from utils.views.board import Scene
from utils.views.calculator import Calculator
from utils.views.controls import GPUS, MEMORIES, flag_control, name_control, named, number_control
from utils.views.dry_run import HEIGHT, dry_run_scene, dry_run_words, predicted_scene
from utils.views.fsdp_step import largest_of_each_block

STRATEGIES = ("fsdp", "hsdp")
SEQUENCE = 2048  # tokens of the one sequence on each rank, fewer where a model has learned fewer positions
_TRACED = "fp32 shards, bf16 copies"
_START, _STOP = "Trace this step", "Stop"


class _Stopped(Exception):
    """The button was pressed while a trace ran."""


class DryRunWidget(Calculator):
    """Five controls, a button with its bar, a sentence and a picture.

    dry_run: called as `dry_run(model, gpus, strategy=…, shard_size=…, recompute=…, sequence=…, progress=…)`, in a
    thread of its own. model: a name in `theory.models.PRESETS`. gpus: 1 to 1024. strategy: "fsdp" or "hsdp";
    shard_size: of hsdp's groups. memory: a name in `MEMORIES`. run: a DryRun made before, for the picture to begin
    with. Errors of a trace, and choices that do not go together, are shown as the sentence.
    """

    run: Any = None

    def __init__(
        self,
        dry_run: Callable[..., Any],
        model: str = "Llama-2-70B",
        gpus: int = 64,
        recompute: bool = False,
        strategy: str = "fsdp",
        shard_size: int = 8,
        memory: str = "80 GB",
        run: Any = None,
    ) -> None:
        check_choice("memory", memory, MEMORIES)
        super().__init__(HEIGHT, words_height=92)
        self.run = run
        self._dry_run, self._memory = dry_run, memory
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._model = Dropdown(options=list(PRESETS), **named("Model", "Which model", 280, 50))
        self._gpus = SelectionSlider(options=GPUS, **named("GPUs", "How many ranks", 230, 50))
        self._strategy = Dropdown(options=STRATEGIES, **named("Strategy", "fsdp, or hsdp with groups", 150, 64))
        self._shard_size = SelectionSlider(
            options=GPUS, **named("Shard group", "How many GPUs share a copy of the model, hsdp", 280, 82)
        )
        self._recompute = Checkbox(
            description="Recompute layers",
            tooltip="Keep each layer's input alone, and compute it again in the backward pass",
            indent=False,
            layout={"width": "160px"},
        )
        self._button = Button(description=_START, tooltip="Run the step on fake tensors in a process of its own")
        self._bar = FloatProgress(min=0, max=1, layout=Layout(width="200px"))
        self._doing = Label(layout=Layout(width="170px"))
        self._settings = (self._model, self._gpus, self._recompute, self._strategy, self._shard_size)
        self.lay_out([*self._settings, self._button, self._bar, self._doing])
        self.model, self.gpus, self.recompute = model, gpus, recompute
        self.strategy, self.shard_size = strategy, shard_size
        self._button.on_click(self._pressed)
        for control in self._settings:
            control.observe(self._predict, names="value")
        if run is None:
            self._predict()
        else:
            self._show_run()

    model = name_control(tuple(PRESETS), "The preset's name.")
    gpus = number_control(GPUS, "The number of ranks, a power of two from 1 to 1024.")
    recompute = flag_control("Whether layers are computed again in the backward pass.")
    strategy = name_control(STRATEGIES, '"fsdp", or "hsdp" with shard groups.')
    shard_size = number_control(GPUS, "The size of hsdp's shard groups, a power of two from 1 to 1024.")

    @property
    def busy(self) -> bool:
        """Whether a trace is running."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def sequence(self) -> int:
        """Tokens on each rank."""
        return min(SEQUENCE, PRESETS[self.model].learned_positions or SEQUENCE)

    def start(self) -> None:
        """Begin a trace in a thread; nothing if one is running."""
        if not self.busy:
            self._stop.clear()
            self._settle(busy=True)
            self._doing.value, self._bar.value = "starting a process", 0
            self._thread = threading.Thread(target=self._work, name="dry run", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the trace that is running, if one is; its process is ended at its next report."""
        if self.busy:
            self._stop.set()
            self._doing.value = "stopping"

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the trace is done, at most `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _pressed(self, _button: Any) -> None:
        if self.busy:
            self.stop()
        else:
            self.start()

    def _settle(self, busy: bool) -> None:
        """What can be pressed and moved while a trace runs, and while none does."""
        self._button.description = _STOP if busy else _START
        for control in self._settings:
            control.disabled = busy
        self._shard_size.disabled = busy or self.strategy == "fsdp"

    @property
    def _group(self) -> int | None:
        return self.shard_size if self.strategy == "hsdp" else None

    def _work(self) -> None:
        try:
            self.run = self._dry_run(
                self.model,
                self.gpus,
                strategy=self.strategy,
                shard_size=self._group,
                recompute=self.recompute,
                sequence=self.sequence,
                progress=self._progress,
            )
            self._doing.value = f"traced in {self.run.seconds:.0f} s"
            self._show_run()
        except _Stopped:
            self._doing.value = "stopped"
        except ValueError as error:
            self._doing.value = "not traced"
            self._say(str(error))
        except Exception as error:  # shown: in a thread nobody would see it
            self._doing.value = "failed"
            self._say(f"{type(error).__name__}: {error}")
        finally:
            self._settle(busy=False)

    def _progress(self, share: float, doing: str) -> None:
        if self._stop.is_set():
            raise _Stopped
        self._bar.value = share
        self._doing.value = f"{share:.0%}: {doing}"

    def _show_run(self) -> None:
        self._bar.value = 1
        self._settle(busy=False)
        memory = MEMORIES[self._memory]
        self.show(dry_run_scene(self.run, memory), dry_run_words(self.run, memory))

    def _predict(self, _change: Any = None) -> None:
        """A move of a control: what the law says, before the trace; or why these choices do not go together."""
        self._settle(busy=False)
        self._bar.value, self._doing.value = 0, ""
        model, memory = PRESETS[self.model], MEMORIES[self._memory]
        try:
            predicted = training_memory(
                model, self.gpus, self.strategy, self.sequence, shard_size=self._group,
                recomputation="full" if self.recompute else "none", optimizer_step="for-loop",
            )  # fmt: skip
        except ValueError as error:
            self._say(str(error))
            return
        moments = memory_over_step(
            model, self._group or self.gpus, self.sequence, 1, Units(), PRECISIONS[_TRACED], self.recompute, "for-loop"
        )
        ask = f"Press “{_START}” to compare."
        words = _predicted_words(predicted, memory, self._memory, ask)
        self.show(predicted_scene(predicted, largest_of_each_block(moments), memory, ask), words)

    def _say(self, words: str) -> None:
        """Words alone, where there is nothing to be seen."""
        self.show(Scene(), words)


def _predicted_words(predicted: Breakdown, memory: float, name: str, ask: str) -> str:
    fits = "fits" if predicted.fits(memory) else "does not fit"
    return (
        f"{predicted.title}. Predicted: at most {format_bytes(predicted.total, binary=False)} "
        f"({predicted.peak_moment.name}), {format_bytes(predicted.at_rest, binary=False)} of them model states; it "
        f"{fits} into {name}. {ask}"
    )
