"""A rank of a job under `python -m torch.distributed.run`: reads its part, joins the group, works, leaves its value."""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from utils.runtime import ship
from utils.runtime.jobs import faults
from utils.runtime.leaving import die_with_parent

CALL, PLAN = "call", "plan"


def main(folder: Path) -> None:
    """Run the job's function and end this process. Errors are left in the folder for the notebook."""
    die_with_parent()
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    try:
        torch.set_num_threads(1)
        group_timeout, plan = pickle.loads((folder / PLAN).read_bytes())
        _join_group(rank, attempt, timedelta(seconds=group_timeout))
        faults.begin(faults.Journal(folder, rank, attempt, plan))
        fn, args = ship.unpack(pickle.loads((folder / CALL).read_bytes()))
        _leave(folder / f"value.{rank}", ship.pack(fn(rank, folder / "shared", *args), back=True).data)
    except BaseException as error:
        said = (time.time(), rank, attempt, type(error).__name__, str(error), traceback.format_exc())
        _leave(folder / f"error.{rank}.{attempt}", pickle.dumps(said))
        traceback.print_exc()
        _end(1)
    dist.barrier()  # nobody leaves while another still needs it
    _end(0)


def _join_group(rank: int, attempt: int, timeout: timedelta) -> None:
    """The agent keeps one store for all attempts (torch 2.13), in which the addresses of the last attempt's ranks still
    stand: without a prefix for each attempt a rank may try to reach one that is dead, and fails."""
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=timeout)
    dist.init_process_group(
        "gloo",
        store=dist.PrefixStore(f"attempt-{attempt}", store),
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timeout,
    )


def _leave(path: Path, data: Any) -> None:
    unfinished = path.with_suffix(f"{path.suffix}-unfinished")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def _end(code: int) -> None:
    """At once: a thread of gloo may ask for Python's lock while an interpreter ends (pytorch issue 179291)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
