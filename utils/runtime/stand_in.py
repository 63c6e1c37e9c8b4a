"""Works of our own, handed out in place of a backend's: where the backend's cannot be shared, or must be held back."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work
from torch.futures import Future

from utils.runtime.recorder import OpenOp
from utils.runtime.works import WORKS

THREADS = "tap"  # the names of the tap's own threads begin with it
# What is chained to a future may itself wait for another operation: never run it where operations are finished. A
# thread is added only while all others are busy.
_CALLBACKS = ThreadPoolExecutor(max_workers=64, thread_name_prefix=f"{THREADS} callbacks")


class StandIn(Work):
    """Complete when the tap says so.

    Where the backend's Work has a future (`offers_future`), so has this one, with the same value. Else it holds no
    tensor. `inner`: waited for too, where only that tells the caller's GPU stream of the result.
    """

    def __init__(self, op: OpenOp, offers_future: bool = False, inner: Work | None = None) -> None:
        super().__init__()
        self._op, self._offers_future, self._inner = op, offers_future, inner
        self._done, self._lock = threading.Event(), threading.Lock()
        self._value: Any = None
        self._source: Future | None = None
        self._future: Any = None
        self._waited = False

    @property
    def needed(self) -> bool:
        """Whether the tap must keep it. C++ keeps no reference to the Python object of a Work, a Python caller does."""
        taken = self._op.handed_out or self._waited or self._future is not None
        return not (self._done.is_set() and taken)

    def finish(self, value: Any = None) -> None:
        """It is over; the recorder has been told whether it failed."""
        with self._lock:
            self._value = value if self._offers_future else None
            self._done.set()
            source = self._source
        if source is not None:
            _CALLBACKS.submit(source.set_result, None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        self._op.has_time_limit = seconds > 0
        if not self._done.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"{self._op.kind} did not complete within {seconds} s")
        self._waited = True
        self._raise_error()
        if self._inner is not None:
            self._inner.wait()
        WORKS.end(self._op)
        with self._lock:  # whoever has waited keeps the tensors, or nobody does
            if self._future is None:
                self._value = _weakly(self._value)
        return True

    def get_future(self) -> Any:
        if not self._offers_future:
            raise RuntimeError("Work::getFuture not implemented.")
        with self._lock:
            over = self._done.is_set() and self._future is None
            if self._future is None:
                self._source = Future()
                # An error given to the source would not reach what waits in C++; one raised in a callback does.
                self._future = self._source.then(lambda _: self._outcome())
                WORKS.stands_for(self._future, self._op)
        if over:
            self._source.set_result(None)
        return self._future

    def result(self) -> Any:
        if not self._offers_future or not self._done.is_set():
            raise RuntimeError(f"{self._op.kind} has no result{' yet' if self._offers_future else ''}")
        WORKS.end(self._op)
        return self._outcome()

    def is_completed(self) -> bool:
        if self._done.is_set():
            WORKS.end(self._op)
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and not self._op.error

    def exception(self) -> Exception | None:
        return RuntimeError(self._op.error) if self._op.error else None

    def _outcome(self) -> Any:
        self._raise_error()
        return _strongly(self._value)

    def _raise_error(self) -> None:
        if self._op.error:
            raise RuntimeError(self._op.error)


def _weakly(value: Any) -> Any:
    """The tensors in nested lists as weak references, which keep no memory."""
    if isinstance(value, torch.Tensor):
        return weakref.ref(value)
    return [_weakly(each) for each in value] if isinstance(value, list | tuple) else value


def _strongly(value: Any) -> Any:
    """The same tensors again; None for one that nobody has kept."""
    if isinstance(value, weakref.ref):
        return value()
    return [_strongly(each) for each in value] if isinstance(value, list | tuple) else value
