"""Notes who waits: for each operation whose Work a Python function received, when that code had waited for it.

The ops of torch's dispatcher cannot tell: a Work is waited for by a method of its own. So the methods that Python code
calls are wrapped, of ProcessGroup (they hand out the Work), of Work and of Future (they wait). They do what they did,
and note it. C++ callers, such as DDP's reducer, do not pass here: what they issue is never noted as handed out. What
torch's own Python code issues for itself, as DDP's `join` does, is noted as internal: C++ may wait for that.

Waited for means: the tensor may be touched. `wait()` returned; or the operation was asked and said that it is over; or
a callback of its future ran. `Work.synchronize()` is no wait: on gloo it returns at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work

from utils.runtime.recorder import OpenOp

ISSUING = (
    "allreduce",
    "allreduce_coalesced",
    "broadcast",
    "reduce",
    "allgather",
    "allgather_coalesced",
    "_allgather_base",
    "all_gather_single",
    "all_gather_single_coalesced",
    "allgather_into_tensor_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    "barrier",
    "send",
    "recv",
)
_TORCH = os.path.dirname(torch.__file__) + os.sep
# What stands between a caller and its collective; contextlib where a coalescing manager issues at its end.
_C10D = (dist.distributed_c10d.__file__, dist.c10d_logger.__file__, contextlib.__file__)
Span = tuple[int, int]  # addresses in memory, the second one past the end


class Works:
    """What this process has handed out, and what of it is not waited for yet."""

    def __init__(self) -> None:
        self._issuing = threading.local()
        self._ops: weakref.WeakKeyDictionary[Any, tuple[OpenOp, ...]] = weakref.WeakKeyDictionary()
        self._installed = False
        self.watched = False  # whether somebody asks which memory is in use
        self.in_use: dict[OpenOp, list[Span]] = {}  # what an operation writes, until it is waited for

    def install(self) -> None:
        """Wrap the methods, once in a process."""
        if self._installed:
            return
        self._installed = True
        for name in ISSUING:
            if hasattr(ProcessGroup, name):
                setattr(ProcessGroup, name, self._handing_out(getattr(ProcessGroup, name)))
        Work.wait = self._waiting(Work.wait)
        Work.result = self._waiting(Work.result)  # raises where the operation is not over
        Work.is_completed = self._asking(Work.is_completed)
        Work.get_future = self._passing_on(Work.get_future)
        future = torch._C.Future
        future.wait = self._waiting(future.wait)
        future.value = self._waiting(future.value)
        future.done = self._asking(future.done)
        future.then = self._calling_back(future.then)
        future.add_done_callback = self._calling_back(future.add_done_callback)
        torch._C._collect_all = self._collecting(torch._C._collect_all)
        dist._register_comm_hook = self._hooking(dist._register_comm_hook)

    def issued(self, op: OpenOp, written: Any) -> None:
        """The tap's note of an operation, between its issue and its return; `written` may not be touched meanwhile."""
        ops = getattr(self._issuing, "ops", None)
        if ops is not None:
            ops.append(op)
            op.internal = self._issuing.internal
            if self.watched and not op.internal and op.kind not in ("send", "barrier"):
                self.in_use[op] = [_span(tensor) for tensor in _flat(written)]

    def end(self, op: OpenOp) -> None:
        """Somebody has waited for it."""
        self.in_use.pop(op, None)
        op.note_wait()

    def users_of(self, tensor: torch.Tensor) -> list[OpenOp]:
        """The operations that write this memory and that nobody has waited for yet."""
        begin, end = _span(tensor)
        return [op for op, spans in list(self.in_use.items()) if any(b < end and begin < e for b, e in spans)]

    def operations_of(self, handle: Any) -> tuple[OpenOp, ...]:
        """What a Work, or its future, stands for; empty for a future of something else."""
        return self._ops.get(handle, ())

    def stands_for(self, handle: Any, op: OpenOp) -> None:
        """The tap's note of a future that it made itself."""
        self._ops[handle] = (op,)

    def _end_all(self, handle: Any) -> None:
        for op in self._ops.get(handle, ()):
            self.end(op)

    def _handing_out(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def issue(group: ProcessGroup, *args: Any, **named: Any) -> Any:
            outer, ops = getattr(self._issuing, "ops", None), []
            self._issuing.ops, self._issuing.internal = ops, _by_torch(sys._getframe(1))
            try:
                work = original(group, *args, **named)
            finally:
                self._issuing.ops = outer
            if work is not None and ops:
                for op in ops:
                    op.handed_out = True
                self._ops[work] = tuple(ops)
            return work

        return issue

    def _waiting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(handle: Any, *args: Any, **named: Any) -> Any:
            result = original(handle, *args, **named)
            self._end_all(handle)
            return result

        return wait

    def _asking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def ask(handle: Any) -> bool:
            over = original(handle)
            if over:
                self._end_all(handle)
            return over

        return ask

    def _passing_on(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_future(work: Work) -> Any:
            future = original(work)
            self._ops[future] = self._ops.get(work, ())
            return future

        return get_future

    def _calling_back(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def register(future: Any, callback: Callable[[Any], Any]) -> Any:
            ops = self._ops.get(future, ())
            if not ops:
                return original(future, callback)

            def called(finished: Any) -> Any:
                for op in ops:
                    self.end(op)
                return callback(finished)

            chained = original(future, called)
            if chained is not None:
                self._ops[chained] = ops
            return chained

        return register

    def _collecting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def collect_all(futures: Iterable[Any]) -> Any:
            futures = list(futures)
            collected = original(futures)
            self._ops[collected] = tuple(op for future in futures for op in self._ops.get(future, ()))
            return collected

        return collect_all

    def _hooking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """DDP's reducer, in C++, waits for the future that a communication hook returns."""

        def register(reducer: Any, state: Any, hook: Callable[[Any, Any], Any]) -> Any:
            def hooked(state: Any, bucket: Any) -> Any:
                future = hook(state, bucket)
                self._end_all(future)
                return future

            return original(reducer, state, hooked)

        return register


def _by_torch(frame: FrameType | None) -> bool:
    """Whether the code that calls `torch.distributed` at `frame` is torch's own."""
    while frame is not None and frame.f_code.co_filename.startswith(_C10D):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)


def _flat(tensors: Any) -> Iterator[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        yield tensors
    else:
        for each in tensors:
            yield from _flat(each)


def _span(tensor: torch.Tensor) -> Span:
    """From the first to one past the last byte that a strided tensor reaches."""
    if not tensor.numel():
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    begin = tensor.data_ptr()
    return begin, begin + (reach + 1) * tensor.element_size()


WORKS = Works()
