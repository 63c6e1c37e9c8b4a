"""Sees whether a thread waits for an operation of torch.distributed, or does something else."""

from __future__ import annotations

import re
import time
from types import FrameType

from torch.autograd import graph
from torch.distributed import distributed_c10d

from utils.runtime import stand_in, tap, works
from utils.runtime.errors import Frame
from utils.runtime.places import is_learner_file

_COMMUNICATING = (distributed_c10d.__file__, tap.__file__, stand_in.__file__)
_WAITS_WITHOUT_LIMIT = re.compile(r"\.wait\(\s*\)")


def waits(innermost: FrameType | None, own: Frame | None) -> bool:
    """True if the thread is inside a call of torch.distributed, in `work.wait()`, or in the backward pass's engine.

    The engine may compute as well: ask `cpu_seconds` twice to tell.
    """
    while innermost is not None and innermost.f_code.co_filename == works.__file__:  # stands around torch's methods
        innermost = innermost.f_back
    if innermost is None:
        return False
    if innermost.f_code.co_filename == graph.__file__:
        return True
    frame = innermost
    while frame is not None and not is_learner_file(frame.f_code.co_filename):
        if frame.f_code.co_filename in _COMMUNICATING:
            return True
        frame = frame.f_back
    # A call into C leaves no frame of its own: the learner's line is the innermost.
    return frame is innermost and own is not None and bool(_WAITS_WITHOUT_LIMIT.search(own.text))


def cpu_seconds(thread: int | None) -> float:
    """Processor time that a thread of this process has used; 0 where the system does not tell."""
    if thread is None or not hasattr(time, "pthread_getcpuclockid"):
        return 0.0
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except OSError:
        return 0.0
