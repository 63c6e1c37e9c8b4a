"""`launch`: run a function on fresh ranks and get back what each returned, printed and sent."""

from __future__ import annotations

import numbers
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from utils.runtime import processes, ship
from utils.runtime.cluster import Cluster
from utils.runtime.device import choose_backend
from utils.runtime.errors import LaunchError
from utils.runtime.job import Account, Job
from utils.runtime.kernel_link import Door, KernelLinks
from utils.runtime.printed import read_printed, show_printed
from utils.runtime.rank import IN_RANK
from utils.runtime.run import Run, Timeline
from utils.runtime.supervisor import Supervisor

MAX_RANKS = 64
LONGEST_RUN = 7 * 24 * 3600  # seconds
_GROUP_TIMEOUT_BEYOND = 30.0  # seconds: the group's own timeout comes later, so that our report comes first


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
    order when the run ends.

    Raises ValueError or TypeError for arguments out of range, and a LaunchError: CannotSend, RankFailed, RankDied or
    RanksHang. Whatever happens, no process of the run is left.
    """
    _refuse_bad_arguments(fn, world_size, timeout, true_reduce_scatter)
    world_size = int(world_size)
    _refuse_unfit_cluster(cluster, world_size, backend)
    chosen = choose_backend("gloo" if cluster and backend == "auto" else backend, world_size)
    method = processes.choose_start_method(start)
    job = Job(
        rank=0,
        world_size=world_size,
        backend=chosen,
        call=ship.pack_call(fn, args),
        setup=ship.pack(tuple(processes.RANK_SETUP)),
        folder="",
        group_timeout=timeout + _GROUP_TIMEOUT_BEYOND,
        threads=max(1, _cores() // world_size),
        environment=dict(os.environ),
        working_directory=_working_directory(),
        path=tuple(sys.path),
        suite=str(processes.SUITE),
        links=cluster.links() if cluster else None,
        true_reduce_scatter=bool(true_reduce_scatter) and chosen == "gloo",
    )
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as folder:
        ranks: list[processes.RankProcess] = []
        supervisor = links = None
        doors: tuple[Door, ...] = ()
        try:
            links = _make_links(cluster) if cluster else None
            if links:
                doors = tuple(links.doors[job.links.node_of(rank)] for rank in range(world_size))
            ranks = processes.take(world_size, method, doors)
            supervisor = Supervisor(ranks, folder, timeout, links)
            for rank, each in enumerate(ranks):
                each.pipe.send_bytes(pickle.dumps(replace(job, rank=rank, folder=folder)))
            values, accounts = supervisor.results()
        except KeyboardInterrupt:
            where = supervisor.interrupted() if supervisor else "they were being started"
            raise KeyboardInterrupt(f"all ranks were ended. At the moment of the interrupt:\n{where}") from None
        finally:
            processes.release(ranks)
            if links:
                links.close()
            printed = read_printed(folder, world_size)
            show_printed(printed)
            if method == "spawn" and not doors:
                processes.keep_ready(world_size)
    opened = [_opened(rank, value) for rank, value in enumerate(values)]
    return _run(job, opened, printed, supervisor, accounts)


def _make_links(cluster: Cluster) -> KernelLinks | None:
    """The nodes and links, ready to be joined; None if links are emulated. Raises a LaunchError if they fail."""
    if cluster.kind == "emulated":
        return None
    try:
        return KernelLinks(
            cluster.nodes, cluster.bits_per_second, cluster.latency if cluster.latency_by == "kernel" else 0.0
        )
    except OSError as error:
        raise LaunchError(f"the cluster's links could not be made this time: {error}.") from None


def _opened(rank: int, value: bytes) -> Any:
    """A rank's result as an object of the notebook's."""
    try:
        return pickle.loads(value)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise LaunchError(
            f"what rank {rank} returned cannot be opened outside the rank ({type(error).__name__}: {reason}). "
            "Return plain data and tensors, of a model its state_dict."
        ) from None


def _run(
    job: Job,
    values: list[Any],
    printed: list[str],
    supervisor: Supervisor,
    accounts: list[Account],
) -> Run:
    emulated = job.links.emulated if job.links else ""
    ring_bytes = tuple(sum(op.ring_bytes for op in account.ops) for account in accounts)
    wire = tuple(account.wire for account in accounts)
    # Counters that stand still while data moved belong to a system that only pretends to have them.
    counted = job.backend == "gloo" and None not in wire and (not any(ring_bytes) or any(w.sent for w in wire))
    return Run(
        world_size=len(values),
        backend=job.backend,
        values=tuple(values),
        printed=tuple(printed),
        seconds=supervisor.seconds,
        ring_bytes=ring_bytes,
        wire_bytes=wire if counted else None,
        link_bytes=supervisor.link_bytes,
        timeline=Timeline(tuple(account.ops for account in accounts), emulated, job.true_reduce_scatter),
        emulated=emulated,
        true_reduce_scatter=job.true_reduce_scatter,
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise LaunchError("the notebook's working folder no longer exists: os.chdir() to one that does.") from None


def _cores() -> int:
    """Cores that this process may use, which in a container can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
