"""Holds an interrupt back while processes are being started, so that none is lost half-way."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """An interrupt that comes inside takes effect at the end. Processes started inside are not reached by it."""
    if threading.current_thread() is not threading.main_thread():  # interrupts reach the main thread alone
        yield
        return
    came: list[tuple] = []
    before = signal.signal(signal.SIGINT, lambda *details: came.append(details))
    # A new process inherits what its parent's thread blocks: the fork server must survive an interrupt.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
        if came and callable(before):
            before(*came[0])
