"""What all ranks of a run share: numbers in small files that each of them maps, and a lock."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from hashlib import sha1
from typing import Any

_NEXT_TRY = 1e-4  # seconds


def shared_numbers(folder: str, name: str, key: Any, count: int, form: str) -> memoryview:
    """`count` numbers of 8 bytes, zero at first: the same ones for every process that gives the same name and key.

    form: "q" for whole numbers, "d" for floats.
    """
    digest = sha1(repr(key).encode(), usedforsecurity=False).hexdigest()
    file = os.open(os.path.join(folder, f"{name}.{digest}"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(file).st_size < 8 * count:
            os.ftruncate(file, 8 * count)
        return memoryview(mmap.mmap(file, 8 * count)).cast(form)
    finally:
        os.close(file)


class SharedLock:
    """Held by one thread of one process at a time. The system opens it when the process that holds it ends."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._threads = threading.Lock()  # the system's lock tells processes apart, not threads

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            _lock(self._file)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            _unlock(self._file)
        finally:
            self._threads.release()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        while True:
            os.lseek(file, 0, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                return
            except OSError:  # somebody else has it; Windows' own way to wait looks once a second
                time.sleep(_NEXT_TRY)

    def _unlock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
