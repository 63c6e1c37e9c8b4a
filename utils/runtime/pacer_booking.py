"""The timetable of emulated links, which all ranks of a run write and read: who uses which link, and until when.

An operation is booked by the rank that joins it last. It begins when all have joined and its links are free, so links
serve one operation after the other, in the order in which operations become ready. It ends for all its ranks at the
same moment: `start + bytes / bandwidth + crossings · latency`; links are taken for the first part of that only.

Where a rank is done before all have joined, as the root of a broadcast may be, it books with those it sees. Who joins
later has waited for nobody: for that rank, and all that see it join, the operation ends one duration later than that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from utils.runtime.pacer_loads import Load
from utils.runtime.shared import SharedLock, shared_numbers

SLOTS = 1024  # operations of a channel that a rank may be ahead of another before old entries are written over
_BOOKED, _END, _HEAD = 0, 1, 2  # of an entry: the number of the operation booked in it, its end; then each rank's part
_SEQUENCE, _ISSUED, _SIZE, _PART = 0, 1, 2, 3


@dataclass(frozen=True)
class Part:
    """One rank's part of an operation.

    channel, sequence: which operation; the same for all that take part. members: how many these are. me: which of them.
    size: S in bytes, as the ring's rules count it.
    """

    channel: str
    sequence: int
    members: int
    me: int
    size: float
    load: Load


class Booking:
    """The timetable of the run whose files are in `folder`. Times are seconds on the clock that all ranks share."""

    def __init__(self, folder: str, nodes: int, bytes_per_second: float, latency: float) -> None:
        self._folder, self._bytes_per_second, self._latency = folder, bytes_per_second, latency
        self._lock = SharedLock(os.path.join(folder, "booking.lock"))
        self._free_at = shared_numbers(folder, "links", "free at", 2 * nodes, "d")
        self._tables: dict[tuple[str, int], memoryview] = {}

    def join(self, part: Part, issued: float) -> None:
        """This rank has issued its part. The last to join books."""
        with self._lock:
            entry = self._entry(part)
            mine = _HEAD + part.me * _PART
            entry[mine + _SEQUENCE], entry[mine + _ISSUED], entry[mine + _SIZE] = part.sequence, issued, part.size
            if all(entry[at + _SEQUENCE] == part.sequence for at in _parts(entry)):
                self._book(part, entry)

    def end(self, part: Part) -> float:
        """When the links are done with the operation, as far as this rank can see; it must have joined."""
        with self._lock:
            entry = self._entry(part)
            self._book(part, entry)
            return entry[_END]

    def _book(self, part: Part, entry: memoryview) -> None:
        joined = [at for at in _parts(entry) if entry[at + _SEQUENCE] == part.sequence]
        last = max(entry[at + _ISSUED] for at in joined)
        size = max(entry[at + _SIZE] for at in joined)  # an uneven all-to-all: as its busiest sender's
        taken = {direction: share * size / self._bytes_per_second for direction, share in part.load.shares}
        lasts = max(taken.values(), default=0.0) + part.load.crossings * self._latency
        if entry[_BOOKED] != part.sequence:
            start = max([last, *(self._free_at[direction] for direction in taken)])
        elif last + lasts > entry[_END]:
            start = last
        else:
            return
        for direction, seconds in taken.items():
            self._free_at[direction] = max(self._free_at[direction], start + seconds)
        entry[_BOOKED], entry[_END] = part.sequence, start + lasts

    def _entry(self, part: Part) -> memoryview:
        key, length = (part.channel, part.members), _HEAD + _PART * part.members
        if key not in self._tables:
            self._tables[key] = shared_numbers(self._folder, "booked", key, SLOTS * length, "d")
        at = part.sequence % SLOTS * length
        return self._tables[key][at : at + length]


def _parts(entry: memoryview) -> range:
    return range(_HEAD, len(entry), _PART)
