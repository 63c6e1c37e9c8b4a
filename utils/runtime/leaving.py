"""How the processes of a run leave: at once, and never without their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading


def leave_at_once() -> None:
    """End this process without tidying up torch, which takes seconds."""
    os._exit(0)


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends, even if it is stuck in C.

    Not for a process that was started from a thread other than the main one: Linux would count the end of that
    *thread* as the parent's end.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


_forking: tuple[int, bool] = (0, False)  # who forks: the process, and whether from its main thread


def forked_children_die_with_this_process() -> None:
    """See to it that what this process forks from its main thread (data loaders' workers, say) ends with it."""
    os.register_at_fork(before=_note_thread, after_in_child=_follow_the_parent)


def _note_thread() -> None:
    global _forking
    _forking = os.getpid(), threading.current_thread() is threading.main_thread()


def _follow_the_parent() -> None:
    parent, in_main = _forking
    if in_main:
        die_with_parent()
        if os.getppid() != parent:  # it ended before this process had asked to be told
            os._exit(0)
