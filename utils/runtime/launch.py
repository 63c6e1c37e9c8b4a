"""`launch`: run a function on fresh ranks and get back what each returned, printed and sent."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

from utils.runtime import real_job
from utils.runtime.cluster import Cluster
from utils.runtime.errors import LaunchError
from utils.runtime.local_ranks import Ask, run_here
from utils.runtime.rank import IN_RANK
from utils.runtime.run import Run

MAX_RANKS = 64
LONGEST_RUN = 7 * 24 * 3600  # seconds


def launch(
    fn: Callable[..., Any],
    world_size: int,
    *args: Any,
    backend: str = "auto",
    cluster: Cluster | None = None,
    timeout: float = 30,
    start: str = "auto",
    true_reduce_scatter: bool = False,
) -> Run:
    """Run `fn(rank, *args)` on `world_size` fresh processes joined in one process group.

    `fn` may be defined in a notebook cell; a function that takes no rank is called as `fn(*args)`. The ranks see the
    notebook's environment, working folder and import path. `backend` is "auto" (NCCL with a GPU for every rank, else
    gloo), "gloo" or "nccl". With a `cluster` the ranks live on its nodes, and gloo talks over its links. `timeout` in
    seconds counts from the moment all ranks are ready. `start` is "auto", "forkserver" or "spawn". With
    `true_reduce_scatter` every sum or mean that gloo would reduce-scatter by an all-reduce moves the (N - 1)/N · S
    bytes of the ring's rule instead, and the run says so; NCCL's is such anyway. What the ranks print is shown in rank
    order when the run ends. In a job of `python -m utils run` the ranks are the job's, on its hosts; see
    `utils.runtime.real_job`.

    Raises ValueError or TypeError for arguments out of range, and a LaunchError: CannotSend, RankFailed, RankDied or
    RanksHang. Whatever happens, no process of the run is left.
    """
    _refuse_bad_arguments(fn, world_size, timeout, true_reduce_scatter)
    world_size = int(world_size)
    _refuse_unfit_cluster(cluster, world_size, backend)
    ask = Ask(fn, world_size, args, backend, cluster, timeout, start, true_reduce_scatter)
    job = real_job.current()
    return (job.launch(ask) if job else run_here(ask)).run()


def _refuse_bad_arguments(fn: Any, world_size: Any, timeout: Any, true_reduce_scatter: Any) -> None:
    if not callable(fn):
        raise TypeError(f"launch runs a function, not {fn!r}: pass the function itself, as in launch(train, 4).")
    if isinstance(world_size, bool) or not isinstance(world_size, numbers.Integral):
        raise TypeError(f"world_size is {world_size!r}; it must be a whole number of ranks from 1 to {MAX_RANKS}.")
    if not 1 <= world_size <= MAX_RANKS:
        raise ValueError(f"world_size is {world_size}; it must be from 1 to {MAX_RANKS} ranks.")
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout is {timeout!r}; it must be a number of seconds above 0.")
    if not 0 < timeout <= LONGEST_RUN:
        raise ValueError(f"timeout is {timeout}; it must be above 0 and at most {LONGEST_RUN:,} seconds (a week).")
    if not isinstance(true_reduce_scatter, bool):
        raise TypeError(f"true_reduce_scatter is {true_reduce_scatter!r}; it must be True or False.")
    if os.environ.get(IN_RANK):
        raise LaunchError(
            "launch was called inside a rank, where it would start ranks of ranks: call it from the notebook."
        )


def _refuse_unfit_cluster(cluster: Any, world_size: int, backend: str) -> None:
    if cluster is None:
        return
    if not isinstance(cluster, Cluster):
        raise TypeError(f"cluster is {cluster!r}; give a Cluster, such as Cluster(nodes=2, ranks_per_node=2).")
    if cluster.ranks != world_size:
        raise ValueError(
            f"the cluster has {cluster.nodes} nodes of {cluster.ranks_per_node}, launch was asked for {world_size} "
            f"ranks: launch {cluster.ranks}, or make a cluster of {world_size}."
        )
    if backend == "nccl":
        raise ValueError("backend is 'nccl', whose GPUs do not talk over a cluster's links: use 'gloo' or no cluster.")
