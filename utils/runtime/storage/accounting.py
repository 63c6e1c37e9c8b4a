"""How many bytes this process has read from files: by the kernel's account where there is one.

Linux counts in `/proc/self/io`, field `rchar`, what calls of `read` have returned to a process (proc_pid_io(5)); bytes
that were in memory already (the page cache) included, which the field `read_bytes`, of the disk alone, leaves out.
Elsewhere the reader of the shards counts for itself, and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KERNEL, READER = "the kernel", "the reader"
_ACCOUNT = Path("/proc/self/io")
_noted = 0


@dataclass(frozen=True)
class BytesRead:
    """bytes: read so far, or between two moments. by: `KERNEL` or `READER`, who counted."""

    bytes: int
    by: str

    def __sub__(self, earlier: BytesRead) -> BytesRead:
        return BytesRead(self.bytes - earlier.bytes, self.by)


def note_read(size: int) -> None:
    """The reader of the shards tells what it has read."""
    global _noted
    _noted += size


def bytes_read() -> BytesRead:
    """So far, by this process and all its threads. The difference of two is what was read in between.

    The account itself is a file that is read: some hundred bytes for each call.
    """
    try:
        fields = dict(line.split(": ") for line in _ACCOUNT.read_text().splitlines())
        return BytesRead(int(fields["rchar"]), KERNEL)
    except (OSError, KeyError, ValueError):
        return BytesRead(_noted, READER)
