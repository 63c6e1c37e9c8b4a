"""What the processes of a job know of each other, and how they talk."""

from __future__ import annotations

import pickle
import socket
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import psutil


@dataclass(frozen=True)
class Host:
    """One process of the job, as it tells rank 0.

    rank, local_rank, node: as the job's launcher numbers them. gpus: how many its machine has. interface: the name of
    the network interface through which it reaches rank 0, "lo" on the same machine.
    """

    rank: int
    local_rank: int
    node: int
    gpus: int
    interface: str


class JobStopped(BaseException):
    """The job has ended on another rank; its text is that rank's report. No cell's `except Exception` may hold it."""


class Line:
    """A connection whose messages are (what, detail). Any thread may say something; one hears."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        with socket.socket(fileno=connection.fileno()) as twin:
            twin.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a small message is not to wait for the next
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.own_address, self.other_address = twin.getsockname()[0], twin.getpeername()[0]
            twin.detach()

    def say(self, what: str, detail: Any = None) -> None:
        """Raises OSError if the other side is gone."""
        data = pickle.dumps((what, detail))
        with self._lock:
            self.connection.send_bytes(data)

    def hear(self) -> tuple[str, Any]:
        """Wait for a message. Raises EOFError or OSError if the other side is gone."""
        return pickle.loads(self.connection.recv_bytes())


def interface_of(address: str) -> str:
    """The name of this machine's network interface that has the address; "" if none has."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address.split("%")[0] == address for each in addresses):
            return name
    return ""


def launch_name(fn: Any, world_size: int) -> str:
    """A launch, as messages and the ranks among each other name it."""
    return f"launch({getattr(fn, '__name__', type(fn).__name__)}, {world_size})"
