"""Runs a function on fresh ranks of this machine: starts them, has them watched, shows what they print."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from utils.runtime import processes, ship
from utils.runtime.cluster import Cluster
from utils.runtime.device import choose_backend
from utils.runtime.errors import LaunchError
from utils.runtime.job import Job
from utils.runtime.kernel_link import Door, KernelLinks
from utils.runtime.outcome import Outcome
from utils.runtime.printed import read_printed, show_printed
from utils.runtime.supervisor import Supervisor

_GROUP_TIMEOUT_BEYOND = 30.0  # seconds: the group's own timeout comes later, so that our report comes first


@dataclass(frozen=True)
class Ask:
    """What `launch` was asked for, each argument as it stands there, and found to be in range."""

    fn: Callable[..., Any]
    world_size: int
    args: tuple
    backend: str
    cluster: Cluster | None
    timeout: float
    start: str
    true_reduce_scatter: bool


def new_job(ask: Ask, call: ship.Parcel, backend: str) -> Job:
    """The job as rank 0 gets it, but for the run's folder. `backend` is the one chosen, "gloo" or "nccl"."""
    return Job(
        rank=0,
        world_size=ask.world_size,
        backend=backend,
        call=call,
        setup=ship.pack(tuple(processes.RANK_SETUP)),
        folder="",
        group_timeout=ask.timeout + _GROUP_TIMEOUT_BEYOND,
        threads=max(1, cores() // ask.world_size),
        environment=dict(os.environ),
        working_directory=working_directory(),
        path=tuple(sys.path),
        suite=str(processes.SUITE),
        links=ask.cluster.links() if ask.cluster else None,
        true_reduce_scatter=ask.true_reduce_scatter and backend == "gloo",
    )


def run_here(ask: Ask) -> Outcome:
    """Run it on processes of this machine. Raises a LaunchError; whatever happens, no process of the run is left."""
    chosen = choose_backend("gloo" if ask.cluster and ask.backend == "auto" else ask.backend, ask.world_size)
    method = processes.choose_start_method(ask.start)
    job = new_job(ask, ship.pack_call(ask.fn, ask.args), chosen)
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as folder:
        ranks: list[processes.RankProcess] = []
        supervisor = links = None
        doors: tuple[Door, ...] = ()
        try:
            links = _make_links(ask.cluster) if ask.cluster else None
            if links:
                doors = tuple(links.doors[job.links.node_of(rank)] for rank in range(ask.world_size))
            ranks = processes.take(ask.world_size, method, doors)
            supervisor = Supervisor(ranks, folder, ask.timeout, links)
            for rank, each in enumerate(ranks):
                each.pipe.send_bytes(pickle.dumps(replace(job, rank=rank, folder=folder)))
            values, accounts = supervisor.results()
        except KeyboardInterrupt:
            raise interrupted(supervisor) from None
        finally:
            processes.release(ranks)
            if links:
                links.close()
            printed = read_printed(folder, ask.world_size)
            show_printed(printed)
            if method == "spawn" and not doors:
                processes.keep_ready(ask.world_size)
    return Outcome.of(job, values, printed, accounts, supervisor)


def interrupted(supervisor: Supervisor | None) -> KeyboardInterrupt:
    """What an interrupt is told as; ranks must still live."""
    where = supervisor.interrupted() if supervisor else "they were being started"
    return KeyboardInterrupt(f"all ranks were ended. At the moment of the interrupt:\n{where}")


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


def working_directory() -> str:
    """The notebook's folder. Raises LaunchError if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise LaunchError("the notebook's working folder no longer exists: os.chdir() to one that does.") from None


def cores() -> int:
    """Cores that this process may use, which in a container can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
