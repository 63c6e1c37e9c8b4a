"""`dry_run`: a training step of a whole cluster in one process, without its memory, its GPUs or its network.

The step runs in a fresh child process: a notebook may have a process group of its own, and neither the fake one nor the
tracker's changes of torch should be met there. It can be started from a thread, so that a notebook goes on meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from utils.runtime.dry_run.buildable import named_model
from utils.runtime.dry_run.compare import padded_parameters
from utils.runtime.dry_run.result import Call, DryRun, Event, Request
from utils.runtime.errors import LaunchError
from utils.theory.allocations import fsdp2_shard
from utils.theory.architecture import Architecture
from utils.theory.arguments import check_amount, check_choice, check_whole, check_yes_or_no
from utils.theory.breakdown import Breakdown, training_memory
from utils.theory.memory import sharing_ranks
from utils.theory.moments import Moment
from utils.theory.traffic import step_bytes
from utils.theory.traffic.step_traffic import StepTraffic
from utils.theory.units import shown

MOST_RANKS = 1024
STRATEGIES = ("fsdp", "hsdp")
_SUITE = Path(__file__).resolve().parents[2]  # this `utils` package
_CHILD = "utils.runtime.dry_run.child"
_LINES = 3  # of what the child printed, in an error

Progress = Callable[[float, str], None]


class DryRunFailed(LaunchError):
    """The dry run gave no result; `str(error)` says where it stood and why."""


def dry_run(
    model: str | Architecture,
    world_size: int,
    strategy: str = "fsdp",
    shard_size: int | None = None,
    recompute: bool = False,
    batch: int = 1,
    sequence: int = 2048,
    progress: Progress | None = None,
    *,
    mixed_precision: bool = True,
    timeout: float = 600,
) -> DryRun:
    """Trace one training step of rank 0 with FSDP2 on fake tensors, and set it beside the laws.

    Every layer is wrapped by `fully_shard`, and the rest as the root; AdamW without foreach, its state made before;
    cross entropy on fp32 logits. Bytes are those of the tensors: no allocator, no CUDA context, no NCCL.

    Args:
        model: a name in `theory.models.PRESETS`, or an `Architecture`; see `dry_run.model` for what is built.
        world_size: 1 to 1024 ranks. strategy: "fsdp", or "hsdp" with `shard_size`, a divisor of the ranks.
        recompute: whether each layer keeps its input alone, and is computed again in the backward pass.
        batch: sequences on the rank. sequence: tokens in each.
        progress: called in this thread, now and then, with a share from 0 to 1 and what is going on.
        mixed_precision: fp32 shards gathered in bf16, gradients reduced in fp32; False: all in fp32.
        timeout: seconds after which the process is ended.

    Raises ValueError for arguments out of range, in one sentence, and DryRunFailed.
    """
    request = _checked(model, world_size, strategy, shard_size, recompute, batch, sequence, mixed_precision)
    check_amount("timeout", timeout, "a number of seconds", "such as 600")
    if progress is not None and not callable(progress):
        raise ValueError(f"progress is {shown(progress)}; give a function of a share and a text, or leave it out")
    predicted, traffic = _predict(request)  # before the run
    begin = time.monotonic()
    found = _run_child(request, progress, timeout)
    return DryRun(
        request=request,
        events=tuple(_event(*each) for each in found["events"]),
        calls=tuple(Call(*each) for each in found["calls"]),
        step_counters=found["step_counters"],
        predicted=predicted,
        traffic=traffic,
        seconds=time.monotonic() - begin,
        resident=found["resident"],
    )


def _checked(
    model: Any, world_size: Any, strategy: Any, shard_size: Any, recompute: Any, batch: Any, sequence: Any, mixed: Any
) -> Request:
    name, architecture = named_model(model)
    check_choice("strategy", strategy, STRATEGIES)
    check_whole("world_size", world_size, "a number of ranks", most=MOST_RANKS)
    group = sharing_ranks(world_size, strategy, shard_size)
    for label, value in (("recompute", recompute), ("mixed_precision", mixed)):
        check_yes_or_no(label, value)
    check_whole("batch", batch, "a number of sequences")
    check_whole("sequence", sequence, "a number of tokens")
    return Request(architecture, name, int(world_size), strategy, group, recompute, int(batch), int(sequence), mixed)


def _predict(request: Request) -> tuple[Breakdown, StepTraffic]:
    size = request.shard_size if request.strategy == "hsdp" else None
    element = 2 if request.mixed_precision else 4
    memory = training_memory(
        request.model, request.world_size, request.strategy, request.sequence, request.batch,
        "full" if request.recompute else "none", size, element_bytes=element, optimizer_step="for-loop",
    )  # fmt: skip
    traffic = step_bytes(
        padded_parameters(request.model, request.shard_size), request.strategy, request.world_size, size,
        bytes_per_element=element, gradient_bytes_per_element=4,
        root_parameters=request.shard_size * fsdp2_shard(request.model.root_tensors, request.shard_size),
    )  # fmt: skip
    return memory, traffic


def _run_child(request: Request, progress: Progress | None, timeout: float) -> dict[str, Any]:
    """Start the process, pass on its progress, and return its result. Whatever happens, it is gone afterwards."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=_environment(),
        )
        late = threading.Event()
        watch = threading.Timer(timeout, lambda: (late.set(), child.kill()))
        watch.daemon = True
        watch.start()
        doing = "starting"
        try:
            assert child.stdin and child.stdout
            _send(child.stdin, request)
            for line in child.stdout:
                message = json.loads(line)
                if "result" in message:
                    return message["result"]
                doing = message["doing"]
                if "error" in message:
                    raise DryRunFailed(f"the dry run of {request.title} failed during {doing}: {message['error']}")
                if progress:
                    progress(message["done"], doing)
            if late.is_set():
                raise DryRunFailed(
                    f"the dry run of {request.title} was still at {doing} after {timeout:g} seconds and was ended: "
                    "give a larger timeout, or a smaller model"
                )
            raise DryRunFailed(_ended(request, doing, child.wait(), said))
        finally:
            watch.cancel()
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                pipe.close()


def _send(pipe: IO[str], request: Request) -> None:
    try:
        pipe.write(json.dumps(asdict(request)) + "\n")
        pipe.flush()
    except BrokenPipeError:
        pass  # it ended at once; why is said below


def _ended(request: Request, doing: str, code: int, said: IO[str]) -> str:
    """The sentence for a process that left without a word."""
    said.seek(0)
    last = " / ".join(said.read().strip().splitlines()[-_LINES:])
    how = f"was killed by signal {-code} (signal 9 is mostly lack of memory)" if code < 0 else f"left with code {code}"
    return f"the process of the dry run of {request.title} {how} during {doing}" + (f": {last}" if last else "")


def _environment() -> dict[str, str]:
    """This process's, without what would change the trace: GPUs, and torch's checks of real process groups."""
    kept = {name: value for name, value in os.environ.items() if name != "TORCH_DISTRIBUTED_DEBUG"}
    path = [str(_SUITE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}


def _event(phase: str, unit: str, part: str, largest: list[float], last: list[float]) -> Event:
    name = f"{phase}, {unit}, {part}"
    return Event(phase, unit, part, Moment(name, *largest), Moment(name, *last))
