"""Messages that start late: the latency of a network, on a machine whose own is far smaller and never the same.

    with late_sends(0.005):        # in a rank
        dist.send(tensor, 1)       # leaves after 5 ms

On one machine a small message takes as long as the system needs to wake the processes: fractions of a millisecond on a
quiet machine, ten on a busy one. To see a law of latency the latency must be chosen, and larger than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._C._distributed_c10d import ProcessGroup

from utils.runtime.paced import pause
from utils.theory.arguments import check_amount


@contextmanager
def late_sends(seconds: float) -> Iterator[None]:
    """Inside: each send of this process waits so long before it begins, the CPU free meanwhile. Collectives do not.

    Raises ValueError for what is no time of at least 0.
    """
    check_amount("seconds", seconds, "the latency of a send", "such as 0.005", least=0)
    original = ProcessGroup.send

    def send(group: ProcessGroup, *args: Any, **named: Any) -> Any:
        pause(seconds)
        return original(group, *args, **named)

    ProcessGroup.send = send
    try:
        yield
    finally:
        ProcessGroup.send = original
