"""Runs a program's text under `python -m torch.distributed.run` on this machine, under a deadline."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.checks.lab01.watched import Rank
from utils.checks.verdict import Mistake

_SUITE = str(Path(__file__).parents[3])  # the folder in which `utils` lies
DEADLINE = 90.0  # seconds; the launcher and every rank import torch first
STUCK = 10.0  # seconds that every rank stands in a collective without using its processor: nobody is left to end it
# What an outer job, or a rank of one, may have left in the environment.
_JOB = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|GROUP_|ROLE_|MASTER_|TORCHELASTIC_|UTILS_)")


@dataclass(frozen=True)
class Finished:
    """What each rank printed on its stdout, and what else it did, by rank."""

    printed: tuple[str, ...]
    ranks: tuple[Rank, ...] = ()

    @property
    def stored_by(self) -> tuple[int, ...]:
        """The ranks that called `torch.save`."""
        return tuple(rank for rank, each in enumerate(self.ranks) if each.stored)


def run_program(text: str, folder: Path, ranks: int, argument: str = "weights.pt") -> Finished:
    """Run `text` in `folder` on `ranks` ranks with one argument: the name of a file to write.

    Raises Mistake, naming the line, if a rank raises, and if the program is not over at the deadline.
    """
    (folder / "train.py").write_text(text, encoding="utf-8")
    (folder / "watched.py").write_text(_WATCHED.replace("SUITE", repr(_SUITE)), encoding="utf-8")
    for attempt in range(ATTEMPTS):
        logs = folder / f"logs{attempt}"
        code = _run_once(folder, logs, ranks, argument)
        errors = [_log(logs, rank, "stderr") for rank in range(ranks)]
        if code == 0:
            return Finished(
                tuple(_log(logs, rank, "stdout") for rank in range(ranks)),
                tuple(pickle.loads((folder / f"rank-{rank}").read_bytes()) for rank in range(ranks)),
            )
        if not any(_ABORT_AT_EXIT in each for each in errors) or any("Traceback" in each for each in errors):
            break
    raise Mistake(_what_failed(errors))


# A thread of gloo may ask for Python's lock while the interpreter ends (pytorch issue 179291). The program is not at
# fault, and a second run gives its result.
_ABORT_AT_EXIT = "terminate called without an active exception"
ATTEMPTS = 3


# The rank's own file: all else is in `utils.checks.lab01.watched`. The suite's folder comes last in the path, so that
# the program finds its own modules first.
_WATCHED = """
import sys
sys.path.append(SUITE)
from utils.checks.lab01.watched import main
main()
"""


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
