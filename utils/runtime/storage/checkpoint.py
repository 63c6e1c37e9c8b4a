"""Writing a checkpoint to the store, and how long training stands still for it.

written = write_state(model.state_dict(), path, bucket)                      # stalls until the last byte is there
written = write_state(model.state_dict(), path, bucket, asynchronous=True)   # stalls for a copy
...
written.wait()                                                               # before the next one, or the end
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch

from utils.runtime.storage.bucket import PIECE, TokenBucket
from utils.theory.arguments import check_yes_or_no


class Written:
    """A checkpoint that is written or on its way. stall: seconds for which `write_state` kept its caller."""

    def __init__(self) -> None:
        self.stall = 0.0
        self._seconds = self._bytes = 0
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def wait(self) -> None:
        """Until it is stored. Raises what went wrong in writing."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    @property
    def seconds(self) -> float:
        """From the first byte's way to the store to the last; waits for it."""
        self.wait()
        return self._seconds

    @property
    def bytes(self) -> int:
        """Of the file; waits for it."""
        self.wait()
        return self._bytes


def write_state(
    state: Mapping[str, Any], path: Path | str, bucket: TokenBucket | None = None, asynchronous: bool = False
) -> Written:
    """Store `state` at `path`, whole or not at all, through the bucket if one is given.

    asynchronous: copy all tensors first, then write in a thread while training goes on and changes the originals. The
    copy needs as much memory again; the caller must `wait` before it writes the next one.
    """
    check_yes_or_no("asynchronous", asynchronous)
    written, begin = Written(), time.perf_counter()
    if asynchronous:
        copy = _copy(state)
        written._thread = threading.Thread(target=_write, args=(written, copy, Path(path), bucket), name="checkpoint")
        written._thread.start()
    else:
        _write(written, state, Path(path), bucket)
    written.stall = time.perf_counter() - begin
    if not asynchronous:
        written.wait()
    return written


def _copy(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.detach().clone()
    if isinstance(state, Mapping):
        return {name: _copy(value) for name, value in state.items()}
    return [_copy(each) for each in state] if isinstance(state, list) else state


def _write(written: Written, state: Any, path: Path, bucket: TokenBucket | None) -> None:
    begin, unfinished = time.perf_counter(), path.with_name(f"{path.name}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            torch.save(state, _Throttled(file, bucket))
        os.replace(unfinished, path)
        written._bytes = path.stat().st_size
    except BaseException as error:
        written._error = error
    written._seconds = time.perf_counter() - begin


class _Throttled:
    """A file to be written, as fast as the store takes it."""

    def __init__(self, file: IO[bytes], bucket: TokenBucket | None) -> None:
        self._file, self._bucket = file, bucket

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for first in range(0, len(view), PIECE):
            piece = view[first : first + PIECE]
            if self._bucket is not None:
                self._bucket.take(len(piece))
            self._file.write(piece)
        return len(view)

    def flush(self) -> None:
        self._file.flush()
