"""In a rank: notes when each gradient becomes ready, and where the answer waits while backward is still running.

Each gradient that becomes ready sets a mark, so that the record tells which collectives were issued before and after:
an order of events, in which no clock has a say.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._C._distributed_c10d import Work

from utils.checks.lab02.traps import Buckets
from utils.checks.ranks import STEP, Mark
from utils.runtime.errors import Frame
from utils.runtime.places import learner_frame
from utils.runtime.works import WORKS


def ready_mark(call: int, place: int) -> str:
    """The mark of the `place`-th gradient that became ready in that call."""
    return f"{STEP}{call}, ready {place}"


@dataclass
class Watch:
    """What one rank noted during one backward.

    order    numbers of the parameters, counted through the buckets, in the order in which they became ready
    blocked  lines that waited for a collective before the last gradient was ready
    """

    call: int
    mark: Mark
    total: int
    order: list[int] = field(default_factory=list)
    blocked: list[Frame | None] = field(default_factory=list)

    def ready(self, number: int) -> None:
        self.order.append(number)
        self.mark(ready_mark(self.call, len(self.order) - 1))

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Inside: note who waits for what is not over, in the thread that computes, while more gradients are to come.

        Only inside are torch's ways to wait wrapped: elsewhere a hang is then recognised at once.
        """
        waits = Work.wait, torch._C.Future.wait
        Work.wait, torch._C.Future.wait = (self._noting(original) for original in waits)
        try:
            yield
        finally:
            Work.wait, torch._C.Future.wait = waits

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(handle: Any, *arguments: Any, **named: Any) -> Any:
            more = len(self.order) < self.total and threading.current_thread() is threading.main_thread()
            # a mark is a barrier of this rank alone, and waits for itself
            ops = [op for op in WORKS.operations_of(handle) if op.completed_at is None and op.kind != "barrier"]
            if more and ops:
                self.blocked.append(learner_frame(sys._getframe(1)))
            return original(handle, *arguments, **named)

        return wait


@contextmanager
def watched(buckets: Buckets, call: int, mark: Mark, total: int) -> Iterator[Watch]:
    """Inside: watch these buckets' parameters, of which `total` will become ready."""
    parameters = [parameter for bucket in buckets for parameter in bucket]
    watch = Watch(call, mark, total)
    handles = [
        parameter.register_post_accumulate_grad_hook(lambda _, number=number: watch.ready(number))
        for number, parameter in enumerate(parameters)
    ]
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()
