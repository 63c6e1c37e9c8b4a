"""Runs a program's text under `python -m torch.distributed.run` on this machine, under a deadline."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from utils.checks.verdict import Mistake

DEADLINE = 90.0  # seconds; the launcher and every rank import torch first
STUCK = 10.0  # seconds that every rank stands in a collective without using its processor: nobody is left to end it
# What an outer job, or a rank of one, may have left in the environment.
_JOB = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|GROUP_|ROLE_|MASTER_|TORCHELASTIC_|UTILS_)")


@dataclass(frozen=True)
class Finished:
    """What each rank printed on its stdout, which ranks called `torch.save`, and the gradients at each step, by rank.

    A step is a call of `step` of any optimizer of torch's; its gradients are those of the parameters in order.
    """

    printed: tuple[str, ...]
    stored_by: tuple[int, ...] = ()
    gradients: tuple[list[list[torch.Tensor | None]], ...] = ()


def run_program(text: str, folder: Path, ranks: int, argument: str = "weights.pt") -> Finished:
    """Run `text` in `folder` on `ranks` ranks with one argument: the name of a file to write.

    Raises Mistake, naming the line, if a rank raises, and if the program is not over at the deadline.
    """
    (folder / "train.py").write_text(text, encoding="utf-8")
    (folder / "watched.py").write_text(_WATCHED, encoding="utf-8")
    for attempt in range(ATTEMPTS):
        logs = folder / f"logs{attempt}"
        code = _run_once(folder, logs, ranks, argument)
        errors = [_log(logs, rank, "stderr") for rank in range(ranks)]
        if code == 0:
            return Finished(
                tuple(_log(logs, rank, "stdout") for rank in range(ranks)),
                tuple(rank for rank in range(ranks) if (folder / f"stored-by-{rank}").exists()),
                tuple(_gradients(folder / f"gradients-{rank}") for rank in range(ranks)),
            )
        if not any(_ABORT_AT_EXIT in each for each in errors) or any("Traceback" in each for each in errors):
            break
    raise Mistake(_what_failed(errors))


# A thread of gloo may ask for Python's lock while the interpreter ends (pytorch issue 179291). The program is not at
# fault, and a second run gives its result.
_ABORT_AT_EXIT = "terminate called without an active exception"
ATTEMPTS = 3


# Runs the program as if it had been started itself. It notes which ranks store something and each step's gradients, and
# says where a rank stands that waits in a collective and uses no processor. A seed gives every rank numbers of its own,
# as other machines' may be: weights are the same on all ranks only if they are sent.
_WATCHED = """
import faulthandler, os, pathlib, runpy, sys, threading, time
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

rank, here = int(os.environ["RANK"]), pathlib.Path(__file__).parent
faulthandler.dump_traceback_later(float(sys.argv.pop(1)))  # where it waits, if it is not over by then
stuck_after = float(sys.argv.pop(1))

def save(*arguments, _save=torch.save, **named):
    here.joinpath(f"stored-by-{rank}").touch()
    return _save(*arguments, **named)

def manual_seed(seed, _seed=torch.manual_seed):
    return _seed(int(seed) + SHIFT * rank)

def note(optimizer, *_):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    steps.append([None if p.grad is None else p.grad.detach().clone() for p in parameters])

def communicates(frame):
    while frame is not None:
        if frame.f_code.co_filename.endswith("distributed_c10d.py"):
            return True
        frame = frame.f_back
    return False

def watch(main=threading.main_thread().ident):
    clock, since, used = time.pthread_getcpuclockid(main), time.monotonic(), -1.0
    sign = here / f"stuck-{rank}"
    while True:
        time.sleep(0.5)
        now = time.clock_gettime(clock)
        if now - used > 0.001 or not communicates(sys._current_frames().get(main)):
            since, used = time.monotonic(), now
            sign.unlink(missing_ok=True)
        elif time.monotonic() - since > stuck_after and not sign.exists():
            faulthandler.dump_traceback()
            sign.touch()

steps, store = [], torch.save
torch.save, torch.manual_seed, torch.random.manual_seed = save, manual_seed, manual_seed
register_optimizer_step_pre_hook(note)
if hasattr(time, "pthread_getcpuclockid"):
    threading.Thread(target=watch, daemon=True).start()
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    store(steps, here / f"gradients-{rank}")
"""
SEED_SHIFT = 1000  # by which the seeds of rank r + 1 differ from those of rank r
_WATCHED = _WATCHED.replace("SHIFT", str(SEED_SHIFT))


def _run_once(folder: Path, logs: Path, ranks: int, argument: str) -> int:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command += [
        f"--log-dir={logs}",
        "--redirects=3",
        "watched.py",
        f"{0.7 * DEADLINE:.1f}",
        f"{STUCK:.1f}",
        "train.py",
        argument,
    ]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_end_with_parent(),
    )
    end = time.monotonic() + DEADLINE
    try:
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.2)
            if all((folder / f"stuck-{rank}").exists() for rank in range(ranks)):
                raise Mistake(f"the program hangs: {_waiting(logs, ranks, folder)}")
        raise Mistake(f"the program is not over after {DEADLINE:.0f} s: {_waiting(logs, ranks, folder)}")
    finally:
        _end(process)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _JOB.match(name)}
    if sys.platform == "linux":
        kept["GLOO_SOCKET_IFNAME"] = "lo"
    return kept | {"OMP_NUM_THREADS": "1"}


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux: have the launcher, and through it the ranks, end when the notebook's kernel is killed."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _end(process: subprocess.Popen) -> None:
    """SIGTERM lets the launcher end its ranks; what does not heed it is killed."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _what_failed(stderr: Sequence[str]) -> str:
    """The first rank's own exception and its line in the program; `stderr` by rank."""
    for text in stderr:
        text = re.sub(r"^\[rank\d+\]: ?", "", text, flags=re.MULTILINE)
        lines = re.findall(r'File "[^"]*train\.py", line (\d+), in .*\n\s*(.+)', text)
        errors = re.findall(r"^(\w+(?:Error|Exception|Exit|Interrupt)(?::.*)?)$", text, re.MULTILINE)
        if lines and errors and "Connection" not in errors[-1]:
            number, source = lines[-1]
            return f"the program raises {errors[-1].rstrip('.')} (line {number}: `{source.strip()}`)."
    why = "a rank of the program ends with an error"
    told = [line for line in map(_last_line, stderr) if line]
    if not told:
        return f"{why} and says no more."
    return f"{why}: {' '.join(dict.fromkeys(told))} Did the ranks part? Is a collective under `if rank == 0:`?"


def _gradients(file: Path) -> list[list[torch.Tensor | None]]:
    return torch.load(file) if file.exists() else []  # a program may end by `os._exit`


def _waiting(logs: Path, ranks: int, folder: Path) -> str:
    where = _where([_log(logs, rank, "stderr") for rank in range(ranks)], folder)
    return f"{where}does every rank issue the same collectives? Is one under `if rank == 0:`?"


def _where(stderr: Sequence[str], folder: Path) -> str:
    """The lines of the program at which the ranks wait; `stderr` by rank."""
    program, places = (folder / "train.py").read_text(encoding="utf-8").splitlines(), []
    for rank, text in enumerate(stderr):
        found = re.search(r'File "[^"]*train\.py", line (\d+) in', text)
        if found:
            places.append(f"rank {rank} waits at line {found[1]}, `{program[int(found[1]) - 1].strip()}`")
    return f"{'; '.join(places)}; " if places else ""


def _last_line(text: str) -> str:
    """Where this rank stood and the last that it wrote, without addresses, numbers and folders, which change."""
    lines = re.findall(r'File "[^"]*train\.py", line (\d+), in .*\n\s*(?:\[rank\d+\]: ?)?\s*(.+)', text)
    errors = re.findall(r"^(?:\[rank\d+\]: ?)?(\w+(?:Error|Exception|Exit|Interrupt): .*)$", text, re.MULTILINE)
    if not lines or not errors:
        return ""
    said = " ".join(re.sub(r"\[[^]]*\]:?\d*|/\S+", "", errors[-1]).split(". ")[0].split())
    if "Connection" in said or "peer" in said:  # how gloo words it depends on who left first
        said = f"{said.split(':')[0]}: the connection to another rank broke off"
    return f"line {lines[-1][0]}: `{lines[-1][1].strip()}` ends with {said.rstrip('. ,')}."


def _log(logs: Path, rank: int, stream: str) -> str:
    files = sorted(logs.glob(f"*/attempt_0/{rank}/{stream}.log"))
    return files[0].read_text(encoding="utf-8", errors="replace") if files else ""
