"""Rank 0 of a job: decides where the ranks of a launch live, watches them, and tells all others what came of it."""

from __future__ import annotations

import pickle
import queue
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch.distributed as dist

from utils.runtime import processes, ship
from utils.runtime.device import BACKENDS
from utils.runtime.errors import LaunchError
from utils.runtime.job import Seat
from utils.runtime.local_ranks import Ask, interrupted, new_job, run_here
from utils.runtime.outcome import Outcome
from utils.runtime.printed import read_printed, show_printed
from utils.runtime.real_job.follower import at_home
from utils.runtime.real_job.remote import Member
from utils.runtime.real_job.words import Host, JobStopped, launch_name
from utils.runtime.supervisor import Supervisor

LATEST = 600.0  # seconds that the other ranks may come later than rank 0: a cell may compute long on a slow host

# Seconds: as `local_ranks` has it; more, for it also limits how long the ranks of slow hosts may take to meet.
_GROUP_TIMEOUT_BEYOND = 180.0


class Lead:
    """Rank 0's part in the job. `store` is where the job's key-value store listens: host and port."""

    def __init__(self, host: Host, members: list[Member], store: tuple[str, int], token: str) -> None:
        self._members, self._store, self._token = members, store, token
        self._hosts = [host, *(member.host for member in members)]
        self._launches, self._inside = 0, False
        self._stated: set[str] = set()

    @property
    def size(self) -> int:
        """How many ranks the job has."""
        return len(self._hosts)

    @property
    def nodes(self) -> int:
        """On how many hosts they are."""
        return len({host.node for host in self._hosts})

    def launch(self, ask: Ask) -> Outcome:
        return self.once(launch_name(ask.fn, ask.world_size), lambda: self._launch(ask))

    def once(self, what: str, do: Callable[[], Any]) -> Any:
        if self._inside:
            return do()
        self._gather(what)
        self._inside = True
        try:
            result = do()
        except Exception as error:
            self._tell("raised", _portable(error))
            raise
        except BaseException as error:
            self._tell("stopped", f"rank 0 was stopped: {type(error).__name__} {error}")
            raise
        finally:
            self._inside = False
        self._tell("gave", result)
        return result

    def failed(self, report: str) -> str:
        """Rank 0's cell has failed with that report: all others stop. Returns what is to be shown."""
        told = self._errors()  # an interrupt may have come because of another rank's error
        report = told or report
        self._tell("stopped", report)
        return report

    def _gather(self, what: str) -> None:
        """Wait until every other rank has come to the same point. Raises JobStopped if one cannot."""
        missing, end = {member.host.rank: member for member in self._members}, time.monotonic() + LATEST
        while missing:
            for rank, member in list(missing.items()):
                try:
                    said, detail = member.said.get(timeout=0.02 if len(missing) > 1 else 0.5)
                except queue.Empty:
                    continue
                if (said, detail) != ("came", what):
                    self._stop(_why(rank, said, detail, what))
                del missing[rank]
            if missing and time.monotonic() > end:
                late = ", ".join(map(str, missing))
                self._stop(f"rank {late} of the job has not come to {what} {LATEST:g} s after rank 0.")

    def _stop(self, report: str) -> None:
        self._tell("stopped", report)
        raise JobStopped(report)

    def _errors(self) -> str:
        """What other ranks have said of errors of theirs and nobody has heard so far."""
        for member in self._members:
            while not member.said.empty():
                said, detail = member.said.get()
                if said in ("failed", "lost"):
                    return _why(member.host.rank, said, detail, "")
        return ""

    def _tell(self, what: str, detail: Any) -> None:
        for member in self._members:
            try:
                member.line.say(what, detail)
            except OSError:
                continue  # it is lost, which the next gathering notices

    def _launch(self, ask: Ask) -> Outcome:
        if ask.cluster is not None:
            self._state(
                "launch: a job's own links have the speed they have. What asks for a Cluster runs on processes of rank "
                f"0's host, {'on emulated links' if ask.cluster.kind == 'emulated' else 'on links made for it'}."
            )
            return run_here(ask)
        if ask.world_size > self.size:
            self._state(
                f"launch: {ask.world_size} ranks are more than the {self.size} of this job; they run as processes of "
                "rank 0's host."
            )
            return run_here(ask)
        return self._launch_on_hosts(ask)

    def _state(self, sentence: str) -> None:
        """Print it, the first time."""
        if sentence not in self._stated:
            self._stated.add(sentence)
            sys.stdout.write(sentence + "\n")

    def _launch_on_hosts(self, ask: Ask) -> Outcome:
        hosts, members = self._hosts[: ask.world_size], self._members[: ask.world_size - 1]
        job = new_job(ask, ship.pack_call(ask.fn, ask.args), self._backend(ask.backend, hosts))
        self._launches += 1
        job = replace(
            job, folder=f"ranks-{self._token}-{self._launches}", group_timeout=ask.timeout + _GROUP_TIMEOUT_BEYOND
        )
        folder = at_home(job, hosts[0].node)
        ranks: list[processes.RankProcess] = []
        supervisor = None
        try:
            jobs = [replace(job, rank=rank, seat=self._seat(rank, hosts)) for rank in range(ask.world_size)]
            ranks += processes.take(1, processes.choose_start_method(ask.start))
            for member, each in zip(members, jobs[1:], strict=True):
                ranks.append(member.start((each, ask.start), folder, member.host.node == hosts[0].node))
            ranks[0].pipe.send_bytes(pickle.dumps(replace(jobs[0], folder=folder)))
            supervisor = Supervisor(ranks, folder, ask.timeout)
            values, accounts = supervisor.results()
        except KeyboardInterrupt:
            raise interrupted(supervisor) from None
        finally:
            processes.release(ranks)
            for member in members:
                member.over()
            printed = read_printed(folder, ask.world_size)
            shutil.rmtree(folder, ignore_errors=True)
            show_printed(printed)
        return Outcome.of(job, values, printed, accounts, supervisor)

    def _seat(self, rank: int, hosts: list[Host]) -> Seat:
        node = hosts[rank].node
        return Seat(
            local_rank=hosts[rank].local_rank,
            local_world_size=sum(host.node == node for host in hosts),
            node=node,
            store=(*self._store, f"ranks-{self._token}-{self._launches}"),
            # Between hosts the one through which they reach each other, on a single host its loopback.
            interface=next(host.interface for host in self._hosts if host.node == node) if self.nodes > 1 else "",
        )

    def _backend(self, wanted: str, hosts: list[Host]) -> str:
        """As `choose_backend` does it for one machine."""
        if wanted not in BACKENDS:
            raise ValueError(f"backend is {wanted!r}; it can be {', '.join(map(repr, BACKENDS))}.")
        without = [host.rank for host in hosts if host.local_rank >= host.gpus]
        if wanted == "nccl" and without:
            raise ValueError(f"backend 'nccl' needs a GPU for each rank, and rank {without[0]} has none: use 'gloo'.")
        return "gloo" if without or wanted == "gloo" or not dist.is_nccl_available() else "nccl"


def _why(rank: int, said: str, detail: Any, what: str) -> str:
    if said == "failed":
        return f"rank {rank} of the job: {detail}"
    if said == "lost":
        return f"rank {rank} of the job is gone: its connection to rank 0 has ended."
    return (
        f"the ranks of the job have gone different ways: rank 0 came to {what}, rank {rank} to {detail}. A cell must "
        "do the same on every rank: seed what is random, and let no time decide."
    )


def _portable(error: Exception) -> Exception:
    """The error, or one like it that can be sent."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return LaunchError(f"{type(error).__name__}: {error}")
