"""Holds completions back until an emulated link would have carried the data. Knows nothing of torch.

The data really moves meanwhile, over the machine's own loopback; what an operation may not do is be over before the
link would let it. A transfer that the machine itself does not bring about in time is as late as it is.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from utils.runtime.cluster import Links
from utils.runtime.pacer_booking import Booking, Part
from utils.runtime.pacer_loads import load
from utils.runtime.recorder import POINT_TO_POINT, RECEIVED, Group, OpenOp, clock

Finish = Callable[[float], None]  # told when the operation was over


class Pacer:
    """One rank's keeper of deadlines, over `links` between nodes. `folder`: the run's, which all ranks share.

    Emulated links have a timetable: see `Booking`. Where the links are the kernel's and only the latency is to be
    added, an operation is over so much later than the kernel says.
    """

    def __init__(self, links: Links, folder: str, thread_name: str) -> None:
        self._links = links
        emulated = links.kind == "emulated"
        self._booking = Booking(folder, links.nodes, links.bits_per_second / 8, links.latency) if emulated else None
        self._alarm = Alarm(thread_name)

    def join(self, op: OpenOp, group: Group) -> Part | None:
        """This rank issues `op`. None if it crosses no link: then nothing holds it back."""
        if op.kind in POINT_TO_POINT:
            ranks = (group.ranks[group.me], op.peer) if op.kind == "send" else (op.peer, group.ranks[group.me])
            me, root = int(op.kind == "recv"), 0
        else:
            ranks, me = op.ranks, group.me
            root = 0 if op.peer is None else ranks.index(op.peer)
        nodes = tuple(self._links.node_of(rank) for rank in ranks)
        if len(set(nodes)) == 1:
            return None
        size = op.bytes
        if op.kind == "all_to_all":  # splits of its own: as much as makes what it sends to others
            size = op.ring_bytes * len(nodes) / (len(nodes) - 1)
        part = Part(op.channel.removesuffix(RECEIVED), op.sequence, len(nodes), me, size, load(op.kind, nodes, root))
        if self._booking:
            self._booking.join(part, op.issued_at)
        return part

    def hold(self, part: Part, finish: Finish) -> None:
        """The data has arrived: call `finish` when the link is done too, at once if it is, else in another thread."""
        now = clock()
        end = self._booking.end(part) if self._booking else now + part.load.crossings * self._links.latency
        if end <= now:
            finish(now)
        else:
            self._alarm.call_at(end, finish)


class Alarm:
    """Calls functions at given times, from one thread. They must not wait for each other."""

    def __init__(self, thread_name: str) -> None:
        self._name = thread_name
        self._due: list[tuple[float, int, Finish]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def call_at(self, when: float, call: Finish) -> None:
        """Call `call(when)` at that time on `recorder.clock`. Late by a tenth of a millisecond or more."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name=self._name)
                self._thread.start()
            heapq.heappush(self._due, (when, next(self._order), call))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or (left := self._due[0][0] - clock()) > 0:
                    self._changed.wait(left if self._due else None)
                when, _, call = heapq.heappop(self._due)
            call(when)
            del call  # it holds the operation's tensors
