"""In a rank: notes when each gradient becomes ready, and where the answer waits while backward is still running.

Each gradient that becomes ready sets a mark, so that the record tells which collectives were issued before and after:
an order of events, in which no clock has a say.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
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
from utils.runtime.recorder import OpenOp
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
        future = torch._C.Future
        waits, asks = (Work.wait, future.wait), (Work.is_completed, future.done)
        Work.wait, future.wait = (self._noting(original) for original in waits)
        Work.is_completed, future.done = (self._counting(original) for original in asks)
        try:
            yield
        finally:
            Work.wait, future.wait = waits
            Work.is_completed, future.done = asks

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(handle: Any, *arguments: Any, **named: Any) -> Any:
            # a mark is a barrier of this rank alone, and waits for itself
            ops = [op for op in WORKS.operations_of(handle) if op.completed_at is None and len(op.ranks) > 1]
            if self._computing() and ops:
                self.blocked.append(learner_frame(sys._getframe(1)))
            return original(handle, *arguments, **named)

        return wait

    def _counting(self, original: Callable[[Any], bool]) -> Callable[[Any], bool]:
        """To ask once in each hook stops nothing; more often is a loop that waits."""
        asked: Counter[OpenOp] = Counter()

        def ask(handle: Any) -> bool:
            ops, over = WORKS.operations_of(handle), original(handle)
            if ops and not over and self._computing():
                asked[ops[0]] += 1
                if asked[ops[0]] == self.total + 1:
                    self.blocked.append(learner_frame(sys._getframe(1)))
            return over

        return ask

    def _computing(self) -> bool:
        """Whether this is the thread that computes, and more gradients are to come."""
        return len(self.order) < self.total and threading.current_thread() is threading.main_thread()


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
