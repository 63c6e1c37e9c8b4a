"""Notes every operation that a rank issues: what, how many bytes, with whom, from which line, and when.

The recorder is told by `utils.runtime.tap`, which stands in front of torch's communication ops. It knows nothing of
torch's ways to communicate, so that it stays small enough to read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from utils.runtime.agreement import IssueTables
from utils.runtime.errors import Frame
from utils.theory.traffic import collective_bytes

clock = time.perf_counter  # seconds; one clock for every process of a machine

POINT_TO_POINT = ("send", "recv")


@dataclass(frozen=True)
class Op:
    """One collective, send or receive, as one rank saw it.

    `bytes` is S in the ring's rules: the whole gathered result, the whole input of a reduce-scatter. `ring_bytes` is
    what this rank sends under those rules. `ranks` are the group's members. `peer` is the other rank of a send or
    receive, or the root. `sequence` counts from 1 within the group (within the pair for sends and receives). Times are
    seconds since the run began; `completed_at` is None for an operation that never completed, and under NCCL, whose
    completion the CPU does not see. `handed_out` tells whether Python code received its Work, and `waited_at` when that
    code had waited for it (None: never). `touched` is the line that used its tensor before; noted only in a check.
    `internal` tells that torch's own Python code issued it for itself. `dtype` is the first tensor's ("float32").
    """

    kind: str
    bytes: int
    ring_bytes: float
    ranks: tuple[int, ...]
    group: str
    sequence: int
    peer: int | None
    line: Frame | None
    issued_at: float
    completed_at: float | None
    error: str = ""
    handed_out: bool = False
    waited_at: float | None = None
    touched: Frame | None = None
    internal: bool = False
    dtype: str = ""


@dataclass(eq=False)
class OpenOp:
    """An operation on its way; becomes an `Op` when the run is over."""

    kind: str
    bytes: int
    ring_bytes: float
    ranks: tuple[int, ...]
    group: str
    channel: str  # operations of one channel are matched in the order of their issue
    sequence: int
    peer: int | None
    line: Frame | None
    issued_at: float = field(default_factory=clock)
    completed_at: float | None = None
    error: str = ""
    is_completed: Callable[[], bool] | None = None  # asked only where no completion time can be had
    has_time_limit: bool = False  # somebody waits for it only so long
    handed_out: bool = False
    waited_at: float | None = None
    touched: Frame | None = None
    internal: bool = False
    dtype: str = ""

    @property
    def pending(self) -> bool:
        return self.completed_at is None and not (self.is_completed is not None and self.is_completed())

    def complete(self, error: str = "", at: float | None = None) -> None:
        """It is over, now or `at` a given time."""
        self.error = error
        self.completed_at = clock() if at is None else at

    def note_wait(self) -> None:
        if self.waited_at is None:
            self.waited_at = clock()

    def closed(self, start: float) -> Op:
        """The record, its times counted from `start`."""
        done = None if self.completed_at is None or self.error else self.completed_at - start
        return Op(
            self.kind,
            self.bytes,
            self.ring_bytes,
            self.ranks,
            self.group,
            self.sequence,
            self.peer,
            self.line,
            self.issued_at - start,
            done,
            self.error,
            self.handed_out,
            None if self.waited_at is None else self.waited_at - start,
            self.touched,
            self.internal,
            self.dtype,
        )


@dataclass(frozen=True)
class Group:
    """A process group as a rank sees it: a name that is its own, the members' ranks, and this rank's place in them."""

    name: str
    ranks: tuple[int, ...]
    me: int


class Recorder:
    """Everything one rank issues, in order."""

    def __init__(self, tables: IssueTables) -> None:
        self._tables = tables
        self.ops: list[OpenOp] = []
        self.issued: dict[str, int] = {}  # by channel
        self.guessing = False  # true once something was issued that the record cannot match with its other side
        self._open: list[OpenOp] = []
        self._lock = threading.Lock()  # the backward pass issues from a thread of its own

    def begin(
        self,
        kind: str,
        total_bytes: int,
        group: Group,
        *,
        peer: int | None = None,
        tag: int = 0,
        line: Frame | None = None,
        sent_bytes: float | None = None,
        dtype: str = "",
    ) -> OpenOp:
        """Note an operation at its issue. `peer` is a place in the group: the other side's, or the root's.

        `sent_bytes` overrides the ring's rule where splits are uneven. Raises RanksDisagree if another rank of the
        group issued something else in its place.
        """
        n = len(group.ranks)
        if sent_bytes is None:
            sent_bytes = collective_bytes(kind, total_bytes, n, rank=group.me, root=peer or 0)
        peer_rank = None if peer is None else group.ranks[peer]
        with self._lock:
            channel = channel_name(kind, group, peer, tag)
            sequence = self.issued[channel] = self.issued.get(channel, 0) + 1
            op = OpenOp(kind, total_bytes, sent_bytes, group.ranks, group.name, channel, sequence, peer_rank, line)
            op.dtype = dtype
            self.ops.append(op)
            self._open.append(op)
        if kind not in POINT_TO_POINT:
            root = -1 if peer_rank is None else peer_rank
            self._tables.agree(kind, total_bytes, group, sequence, root, dtype)
        return op

    def pending(self) -> list[OpenOp]:
        """Issued and not complete, the oldest first."""
        with self._lock:
            self._open = [op for op in self._open if op.pending]
            return list(self._open)


def channel_name(kind: str, group: Group, peer: int | None, tag: int) -> str:
    """Where an operation is matched with the other ranks' parts of it."""
    if kind == "send":
        return f"{group.name}: {group.me} to {peer}, tag {tag}"
    if kind == "recv":
        return f"{group.name}: {peer} to {group.me}, tag {tag}{RECEIVED}"
    return group.name


RECEIVED = " (received)"  # the receiving side counts on a channel of its own
