"""A job under `python -m torch.distributed.run --max-restarts`: a rank is killed, and all begin again.

    run = run_with_restarts(train, 2, max_restarts=1, kill=Kill(rank=1, step=13))
    run.values, run.lost, run.attempts

torch's agent watches the ranks. When one dies it ends the others, waits until they are gone and starts all of them
anew, with TORCHELASTIC_RESTART_COUNT one higher; that is all. What was computed since the last checkpoint is lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.runtime import ship
from utils.runtime.errors import LaunchError, RankDied, RankFailed, RanksHang
from utils.runtime.interrupts import uninterrupted
from utils.runtime.jobs.faults import Kill, read_journal
from utils.runtime.jobs.member import CALL, PLAN
from utils.theory.arguments import check_all, check_amount, check_whole

MOST_RANKS, MOST_RESTARTS = 16, 10
_SUITE = str(Path(__file__).resolve().parents[3])  # the folder in which `utils` lies
# What an outer job, or a rank of one, may have left in the environment.
_JOB = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|GROUP_|ROLE_|MASTER_|TORCHELASTIC_|UTILS_)")
_ECHO = re.compile(r"Connection (closed|reset) by peer|Broken pipe|Read error|Socket closed")
_MAIN = "import sys\nsys.path[:] = {path!r}\nfrom pathlib import Path\nfrom utils.runtime.jobs.member import main\n"


@dataclass(frozen=True)
class Restarted:
    """What became of a job. values: what the function returned, by rank. seconds: from its start to its end.

    steps: by rank, (attempt, steps done) of each call of `reached`, from the rank's journal.
    """

    values: tuple[Any, ...]
    steps: tuple[tuple[tuple[int, int], ...], ...] = field(repr=False)
    seconds: float

    @property
    def attempts(self) -> int:
        """How often the ranks were started: 1 if nothing happened."""
        return 1 + max((attempt for journal in self.steps for attempt, _ in journal), default=0)

    @property
    def lost(self) -> int:
        """Steps that were done and had to be done again, over all restarts: counted in the journals."""
        lost = 0
        for attempt in range(1, self.attempts):
            before = [step for journal in self.steps for a, step in journal if a == attempt - 1]
            after = [step for journal in self.steps for a, step in journal if a == attempt]
            lost += max(0, max(before, default=0) - min(after, default=0))
        return lost


def run_with_restarts(
    train: Callable[..., Any],
    ranks: int,
    *args: Any,
    max_restarts: int = 1,
    kill: Kill | Sequence[Kill] | None = None,
    timeout: float = 300,
) -> Restarted:
    """Run `train(rank, folder, *args)` on so many ranks joined by gloo, started by torch's agent on this machine.

    train: may be defined in a notebook cell. It calls `reached(step)` at the begin of each step.
    folder: a `Path`, empty at first, the same for all ranks and all attempts: for checkpoints. Removed at the end.
    max_restarts: how often all ranks are started again when one fails, 0 to 10. kill: who dies when.
    timeout: seconds for the whole job; starting takes some, as every process imports torch.

    Raises ValueError for arguments out of range, and a LaunchError: RankFailed or RankDied when no restart is left,
    RanksHang at the deadline.
    """
    check_whole("ranks", ranks, "how many ranks to start", most=MOST_RANKS)
    check_whole("max_restarts", max_restarts, "how often the ranks are started again", least=0, most=MOST_RESTARTS)
    check_amount("timeout", timeout, "seconds for the whole job", "such as 300")
    kill = () if kill is None else (kill,) if isinstance(kill, Kill) else kill
    plan = check_all("kill", kill, Kill, "such as [Kill(1, 13)]")
    for each in plan:
        check_whole("the rank of kill", each.rank, "a rank of the job", least=0, most=ranks - 1)
    folder = Path(tempfile.mkdtemp(prefix="job-"))
    try:
        (folder / "shared").mkdir()
        (folder / CALL).write_bytes(pickle.dumps(ship.pack_call(train, args)))
        (folder / PLAN).write_bytes(pickle.dumps((float(timeout), plan)))
        (folder / "main.py").write_text(_MAIN.format(path=[_SUITE, *sys.path]) + f"main(Path({str(folder)!r}))\n")
        begin = time.monotonic()
        code = _run(folder, int(ranks), int(max_restarts), float(timeout))
        seconds = time.monotonic() - begin
        steps = tuple(read_journal(folder, rank) for rank in range(ranks))
        if code:
            raise _failure(folder, int(ranks), int(max_restarts), steps)
        values = tuple(pickle.loads((folder / f"value.{rank}").read_bytes()) for rank in range(ranks))
        return Restarted(values, steps, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, ranks: int, max_restarts: int, timeout: float) -> int:
    """The agent's exit code. Raises RanksHang at the deadline; whatever happens, no process of the job is left."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command += [f"--max-restarts={max_restarts}", "--monitor-interval=0.1", f"--log-dir={folder / 'logs'}"]
    command += ["--redirects=3", str(folder / "main.py")]
    environment = {name: value for name, value in os.environ.items() if not _JOB.match(name)}
    if sys.platform != "win32":
        environment["GLOO_SOCKET_IFNAME"] = "lo" if sys.platform == "linux" else "lo0"
    with uninterrupted():
        process = subprocess.Popen(
            command,
            env=environment | {"OMP_NUM_THREADS": "1", "TORCHELASTIC_ERROR_FILE": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(folder / "agent", "wb"),  # noqa: SIM115
            preexec_fn=_end_with_parent(),
        )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise RanksHang(
            f"the job is not over after {timeout:g} s: {_progress(folder, ranks)}. Does every rank issue the same "
            "collectives, also after a restart? All must go on from the same step."
        ) from None
    finally:
        _end(process)


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux: have the agent, and through it the ranks, end when the notebook's kernel is killed."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _end(process: subprocess.Popen) -> None:
    """SIGTERM lets the agent end its ranks, which end with it anyway; what does not heed it is killed."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def _progress(folder: Path, ranks: int) -> str:
    told = []
    for rank in range(ranks):
        journal = read_journal(folder, rank)
        told.append(f"rank {rank} {f'has done {journal[-1][1]} steps' if journal else 'has not begun'}")
    return ", ".join(told)


def _failure(folder: Path, ranks: int, max_restarts: int, steps: tuple) -> LaunchError:
    """The first error of the last attempt that is no echo of another rank's end."""
    errors = sorted(pickle.loads(path.read_bytes()) for path in folder.glob("error.*.*") if path.suffix[1:].isdigit())
    last = max([attempt for _, _, attempt, *_ in errors], default=0)
    own = [error for error in errors if error[2] == last and not _ECHO.search(error[4])]
    left = f"no restart is left (max_restarts={max_restarts})"
    if own:
        _, rank, attempt, kind, text, whole = own[0]
        return RankFailed(f"rank {rank} raised {kind}: {text} in attempt {attempt}, and {left}.\n{whole}")
    killed = re.search(r"exitcode\s*: -9", (folder / "agent").read_text(errors="replace"))
    how = "was killed by SIGKILL" if killed else "died"
    return RankDied(f"a rank {how}, and {left}: {_progress(folder, ranks)}.")
