"""A store that gives so many bytes a second, whoever asks: a token bucket that all processes of a machine share.

    bucket = TokenBucket(folder / "bucket", 10 * MB)
    bucket.take(65536)       # returns when the store would have delivered them

The bytes themselves come from files of this machine, which are mostly in its memory: what is slow is the bucket alone.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from utils.runtime.storage.paths import path_of
from utils.theory.arguments import check_amount, check_whole
from utils.theory.units import KiB

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PIECE = 64 * KiB  # bytes that are asked for at once, at most


class TokenBucket:
    """`bytes_per_second` for all together. It can be sent to ranks; those that open the same file share it.

    path: of the bucket's file, made if it is not there. burst: bytes that pass at once after a pause; if left out, a
    piece and what passes in 20 ms: processes of a busy machine wake so late.
    The file holds one number: when the bucket would be full again if nobody took more (a "generic cell rate
    algorithm", ITU-T I.371). Clocks of the processes of one machine agree.
    Raises ValueError for numbers out of range and for what is no path, OSError where the system has no file locks.
    """

    def __init__(self, path: Path | str, bytes_per_second: float, burst: float | None = None) -> None:
        where = path_of("path", path, "the file that all readers share")
        check_amount("bytes_per_second", bytes_per_second, "what the store delivers", "such as 10 * MB")
        burst = PIECE + 0.020 * float(bytes_per_second) if burst is None else burst
        check_amount("burst", burst, "bytes that pass at once after a pause", "such as 128 * KiB")
        if fcntl is None:
            raise OSError("this system has no file locks, by which loaders share a store: use Linux or macOS.")
        self.path, self.bytes_per_second, self.burst = where, float(bytes_per_second), float(burst)
        self.path.touch()

    def take(self, size: int) -> float:
        """Wait until the store would have delivered `size` bytes; returns how many seconds that was."""
        check_whole("size", size, "a number of bytes", least=0)
        begin = time.monotonic()
        full_again = self._book(size / self.bytes_per_second, begin)
        due = full_again - self.burst / self.bytes_per_second
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        return time.monotonic() - begin

    def _book(self, seconds: float, now: float) -> float:
        """Put the bytes at the end of what is already asked for; when the bucket is full again then."""
        with open(self.path, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            stored = file.read(8)
            full_again = max(now, struct.unpack("d", stored)[0] if len(stored) == 8 else now) + seconds
            os.pwrite(file.fileno(), struct.pack("d", full_again), 0)
        return full_again
