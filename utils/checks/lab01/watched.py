"""In each rank of a program under `torch.distributed.run`: runs it as if started itself, and notes what it does.

What is noted: each call of `optimizer.step()`, with weights and gradients at its beginning and the samples that went
backward since the last; every operation that the rank issues, and who waited for it; who stores something. It also says
where a rank stands that waits in a collective and uses no processor.

Every seed gives each rank numbers of its own, as another machine, or another release of torch, may: weights are the
same on all ranks, and another rank's samples are known, only if they are sent.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import random
import runpy
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from utils.checks.waiting import touches_noted
from utils.runtime.recorder import Op, Recorder, clock
from utils.runtime.tap import Tap

SEED_SHIFT = 1000  # by which the seeds of rank r + 1 differ from those of rank r

Tensors = list[torch.Tensor | None]


@dataclass(frozen=True)
class Step:
    """One `optimizer.step()`: its parameters and their gradients when it begins, `samples` that a layer ran backward.

    `received` counts the bytes of the collectives, sends and receives that this rank issued in the program until then.
    """

    weights: Tensors
    gradients: Tensors
    samples: int
    received: int
    closure: bool


@dataclass(frozen=True)
class Rank:
    """What one rank did. `ops`: every operation, times in seconds since the program began."""

    steps: tuple[Step, ...] = ()
    ops: tuple[Op, ...] = ()
    stored: bool = False


class _NoTables:
    """In place of the tables that a run compares collectives by: this program's ranks share none."""

    def agree(self, *_: Any) -> None:
        return None


@dataclass
class Notes:
    """Filled while the program runs."""

    recorder: Recorder = field(default_factory=lambda: Recorder(_NoTables()))
    steps: list[Step] = field(default_factory=list)
    samples: int = 0
    stored: bool = False

    def at_step(self, optimizer: torch.optim.Optimizer, arguments: tuple, named: dict) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [None if p.grad is None else p.grad.detach().clone() for p in parameters]
        weights = [p.detach().clone() for p in parameters]
        closure = any(callable(each) for each in (*arguments, *named.values()) if each is not optimizer)
        received = sum(op.bytes for op in self.recorder.ops)
        self.steps.append(Step(weights, gradients, self.samples, received, closure))
        self.samples = 0

    def at_forward(self, module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(module, nn.Linear) and output.requires_grad:
            output.register_hook(lambda _: self._count(len(output)))

    def _count(self, samples: int) -> None:
        self.samples += samples

    def write(self, file: Path, start: float) -> None:
        ops = tuple(op.closed(start) for op in list(self.recorder.ops))
        file.write_bytes(pickle.dumps(Rank(tuple(self.steps), ops, self.stored)))


def main() -> None:
    """`watched.py SECONDS STUCK train.py ARGUMENT`: a note of all stacks after SECONDS, or when stuck for STUCK."""
    rank, here = int(os.environ["RANK"]), Path(sys.argv[0]).parent
    seconds, stuck_after = map(float, sys.argv[1:3])
    del sys.argv[:3]
    faulthandler.dump_traceback_later(seconds)  # where it waits, if it is not over by then
    if hasattr(time, "pthread_getcpuclockid"):
        sign, thread = here / f"stuck-{rank}", threading.main_thread().ident
        threading.Thread(target=_watch, args=(sign, thread, stuck_after), daemon=True).start()

    notes, start, leave = Notes(), clock(), os._exit
    _seed_by_rank(SEED_SHIFT * rank)
    _note_what_is_stored(notes)
    register_optimizer_step_pre_hook(notes.at_step)
    nn.modules.module.register_module_forward_hook(notes.at_forward)
    Tap(notes.recorder)

    def written_then(code: int) -> None:
        notes.write(here / f"rank-{rank}", start)
        leave(code)

    os._exit = written_then
    try:
        with touches_noted():
            kept = runpy.run_path(sys.argv[0], run_name="__main__")  # freeing a DDP module at the end could hang
    finally:
        notes.write(here / f"rank-{rank}", start)
    sys.stdout.flush()
    sys.stderr.flush()
    del kept
    leave(0)


def _seed_by_rank(shift: int) -> None:
    class Generator(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(int(seed) + shift)

    def shifted(seed_with: Any) -> Any:
        def seed(value: Any = None, *rest: Any) -> Any:
            return seed_with(value + shift if isinstance(value, int) else value, *rest)

        return seed

    torch.Generator = Generator
    torch.manual_seed = torch.random.manual_seed = shifted(torch.manual_seed)
    random.seed, np.random.seed, np.random.default_rng = map(
        shifted, (random.seed, np.random.seed, np.random.default_rng)
    )


def _note_what_is_stored(notes: Notes) -> None:
    save = torch.save

    def noted(*arguments: Any, **named: Any) -> None:
        notes.stored = True
        save(*arguments, **named)

    torch.save = noted


def _communicates(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith("distributed_c10d.py"):
            return True
        frame = frame.f_back
    return False


def _watch(sign: Path, thread: int, stuck_after: float) -> None:
    """Put up the sign while the thread stands in a collective and uses no processor, and write where it stands."""
    cpu, since, used = time.pthread_getcpuclockid(thread), time.monotonic(), -1.0
    while True:
        time.sleep(0.5)
        now = time.clock_gettime(cpu)
        if now - used > 0.001 or not _communicates(sys._current_frames().get(thread)):
            since, used = time.monotonic(), now
            sign.unlink(missing_ok=True)
        elif time.monotonic() - since > stuck_after and not sign.exists():
            faulthandler.dump_traceback()
            sign.touch()
