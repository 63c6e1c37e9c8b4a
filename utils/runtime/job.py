"""What a rank is sent to do, and what it says back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from utils.runtime.cluster import Links
from utils.runtime.errors import Frame
from utils.runtime.recorder import Op
from utils.runtime.ship import Parcel
from utils.runtime.wire import WireBytes


@dataclass(frozen=True)
class Seat:
    """Where a rank sits that a job of several processes has started, perhaps on several hosts.

    local_world_size: ranks of the run on its host. store: the host, the port and the prefix under which the ranks meet.
    interface: of the host's network, for traffic between the ranks; "" for the loopback.
    """

    local_rank: int
    local_world_size: int
    node: int
    store: tuple[str, int, str]
    interface: str


@dataclass(frozen=True)
class Job:
    """One rank's part of a run. The environment, folder and path are the notebook's at the time of the call."""

    rank: int
    world_size: int
    backend: str
    call: Parcel  # (function, arguments)
    setup: Parcel  # callables run in the rank before the group is made
    folder: str  # the run's private temporary folder
    group_timeout: float  # seconds
    threads: int
    environment: dict[str, str] = field(repr=False)
    working_directory: str = ""
    path: tuple[str, ...] = ()
    suite: str = ""  # where the notebook's own `utils` lies
    links: Links | None = None  # between the nodes, if the run has nodes
    true_reduce_scatter: bool = False  # in place of gloo's
    seat: Seat | None = None  # None: all ranks are on this machine, started by one process


@dataclass(frozen=True)
class Place:
    """Where a rank is at the moment of asking."""

    issued: dict[str, int]  # operations issued, by channel
    pending: tuple[PendingOp, ...]
    frame: Frame | None
    blocked: bool = False  # the function's thread is seen to wait for an operation, and no other thread runs
    cpu_seconds: float = 0.0  # that the function's thread has used so far


@dataclass(frozen=True)
class PendingOp:
    """An operation that a rank has issued and that is not complete."""

    kind: str
    bytes: int
    ranks: tuple[int, ...]
    channel: str
    sequence: int
    peer: int | None
    line: Frame | None


@dataclass(frozen=True)
class Account:
    """What a rank recorded over the whole run."""

    ops: tuple[Op, ...]
    wire: WireBytes | None


Setup = Callable[[int], None]
