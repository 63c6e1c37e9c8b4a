"""How the processes of a job find each other: rank 0 listens, all others call."""

from __future__ import annotations

import _thread
import os
import secrets
import signal
import socket
import threading
from datetime import timedelta
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

import cloudpickle.cloudpickle
import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from utils.runtime import real_job
from utils.runtime.errors import LaunchError
from utils.runtime.real_job.follower import Follower
from utils.runtime.real_job.lead import Lead
from utils.runtime.real_job.remote import Member
from utils.runtime.real_job.words import Host, Line, interface_of

START_LIMIT = 180.0  # seconds for all processes of the job to come
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what every launcher of jobs for torch sets


def is_in_job() -> bool:
    """Whether this process was started as one of a job's."""
    return all(os.environ.get(name) for name in _NEEDED)


def join_job() -> Lead | Follower:
    """Become a rank of the job that the environment tells of. Raises LaunchError if the others do not come."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store, _, _ = next(iter(rendezvous("env://", timeout=timedelta(seconds=START_LIMIT))))
    store = dist.PrefixStore("utils", store)
    try:
        job = _listen(store, size, address, port) if rank == 0 else _call(store, rank, address)
    except (dist.DistError, OSError, EOFError, AuthenticationError) as error:
        reason = str(error).split("\n")[0]
        raise LaunchError(f"rank {rank}: the {size} ranks of the job did not meet at {address}: {reason}.") from None
    _number_classes_by_name()
    real_job.enter(job)
    return job


def _listen(store: dist.Store, size: int, address: str, port: int) -> Lead:
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    anywhere = "::" if family == socket.AF_INET6 else "0.0.0.0"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may have it ignored
    key, token = secrets.token_bytes(32), secrets.token_hex(8)
    members: list[Member] = []
    with Listener((anywhere, 0), family.name, backlog=size, authkey=key) as listener:
        store.set("call", f"{family.name} {listener.address[1]} {key.hex()}")
        if size > 1:
            store.wait([f"calls {rank}" for rank in range(1, size)], timedelta(seconds=START_LIMIT))
        while len(members) < size - 1:
            try:
                line = Line(listener.accept())
            except (AuthenticationError, EOFError, OSError):  # somebody else has called
                continue
            members.append(Member(line, line.hear()[1], _interrupt))
    members.sort(key=lambda member: member.host.rank)
    me = _me("")
    reached = [member.line.own_address for member in members if member.host.node != me.node]
    return Lead(_me(interface_of(reached[0]) if reached else ""), members, (address, port), token)


def _interrupt() -> None:
    """Interrupt the cell that runs. A signal, where there are such, also ends a sleep."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _call(store: dist.Store, rank: int, address: str) -> Follower:
    family, port, key = store.get("call").decode().split()
    store.set(f"calls {rank}", "")
    line = Line(Client((address, int(port)), family, authkey=bytes.fromhex(key)))
    host = _me(interface_of(line.own_address))
    line.say("here", host)
    return Follower(host, line)


def _me(interface: str) -> Host:
    rank = int(os.environ["RANK"])
    return Host(
        rank=rank,
        local_rank=int(os.environ.get("LOCAL_RANK", rank)),
        node=int(os.environ.get("GROUP_RANK", 0)),
        gpus=torch.cuda.device_count(),
        interface=interface,
    )


def _number_classes_by_name() -> None:
    """Give a cell's class the same number on every rank of the job.

    A value that comes back names its class by cloudpickle's number, which is drawn at random. All ranks run the same
    cells; the k-th class of a name is the same class on all of them.
    """
    pickling = cloudpickle.cloudpickle
    seen: dict[str, int] = {}

    def number(cls: type) -> str:
        with pickling._DYNAMIC_CLASS_TRACKER_LOCK:
            known = pickling._DYNAMIC_CLASS_TRACKER_BY_CLASS.get(cls)
            if known is None:
                name = f"{cls.__module__}.{cls.__qualname__}"
                seen[name] = seen.get(name, 0) + 1
                known = f"{name} {seen[name]}"
                pickling._DYNAMIC_CLASS_TRACKER_BY_CLASS[cls] = known
                pickling._DYNAMIC_CLASS_TRACKER_BY_ID[known] = cls
            return known

    pickling._get_or_create_tracker_id = number
