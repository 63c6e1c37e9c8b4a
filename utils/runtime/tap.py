"""The one instrumentation point: a kernel in front of every `c10d` op of torch's dispatcher.

Everything in torch that communicates passes here: `torch.distributed` calls, DDP's reducer in C++, FSDP, DTensor,
functional collectives. The kernel sits at the BackendSelect key, which comes before every device's own kernel; it notes
the call and passes it on, and `init_process_group("gloo")` stays as it is. Who waits for what the calls return is noted
in `utils.runtime.works`. On a cluster of emulated links it also says when an operation is over: see `pacer`.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work

from utils.runtime.cluster import Links
from utils.runtime.pacer import Pacer
from utils.runtime.pacer_booking import Part
from utils.runtime.places import learner_frame
from utils.runtime.recorder import Group, OpenOp, Recorder
from utils.runtime.stand_in import THREADS, StandIn
from utils.runtime.storages import note_communicated
from utils.runtime.true_reduce_scatter import begin_exchange
from utils.runtime.works import WORKS

KIND_OF = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "gather_into_tensor_": "gather",  # since torch 2.14
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "gather_": "gather",
    "scatter_": "scatter",
    "barrier": "barrier",
    "send": "send",
    "recv_": "recv",
}
NOT_TAPPED = {
    "recv_any_source_": "only noted to exist: its caller reads the sender from the backend's own Work object",
    "monitored_barrier_": "returns no Work and moves no data that a learner counts",
    "check_for_nan": "communicates nothing",
}

_AFTER = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)


def tensor_bytes(tensors: Any) -> int:
    """Bytes of a tensor or of nested lists of tensors."""
    if isinstance(tensors, torch.Tensor):
        return tensors.numel() * tensors.element_size()
    return sum(tensor_bytes(t) for t in tensors)


class Tap:
    """Installs the kernels for one rank and tells its recorder.

    pacer: holds completions back, where there is one. true_reduce_scatter: gloo's is done another way, as
    `utils.runtime.true_reduce_scatter` tells. links: on which node each rank is.
    """

    def __init__(
        self,
        recorder: Recorder,
        pacer: Pacer | None = None,
        true_reduce_scatter: bool = False,
        links: Links | None = None,
    ) -> None:
        self._recorder, self._pacer, self._true_reduce_scatter = recorder, pacer, true_reduce_scatter
        self._links = links
        # Groups stay alive to the end of the rank: their sockets' counters with them, and a group that dies while a
        # DDP module is freed can hang the rank.
        self._groups: list[tuple[ProcessGroup, Group, bool]] = []
        self._waiters: dict[str, queue.SimpleQueue] = {}
        self._stand_ins: list[StandIn] = []  # those that nobody else keeps
        self._library = torch.library.Library("c10d", "IMPL")
        for name, kind in KIND_OF.items():
            if hasattr(torch.ops.c10d, name):
                self._install(name, kind)
        self._note_any_source()
        WORKS.install()

    def _install(self, name: str, kind: str) -> None:
        op = getattr(torch.ops.c10d, name).default
        arguments = [argument.name for argument in op._schema.arguments]
        group_at = arguments.index("process_group")
        peer_at = next((arguments.index(a) for a in ("dst", "src", "root_rank") if a in arguments), None)
        tag_at = arguments.index("tag") if "tag" in arguments else None
        returns_tensors = len(op._schema.returns) > 1

        def kernel(keys: Any, *args: Any) -> Any:
            group, timed = self._group(args[group_at])
            record = self._recorder.begin(
                kind,
                _total_bytes(kind, args, len(group.ranks)),
                group,
                peer=None if peer_at is None else args[peer_at],
                tag=0 if tag_at is None else args[tag_at],
                line=learner_frame(sys._getframe(1)),
                sent_bytes=_sent_to_others(name, args, group.me),
                dtype=_dtype(args[0]),
            )
            if timed:
                self._recorder.guessing = True
            note_communicated(args[:2])
            part = self._pacer.join(record, group) if self._pacer else None
            exchange = out = None
            try:
                if kind == "reduce_scatter" and self._true_reduce_scatter:
                    ring = self._shares_nodes(group)
                    exchange = begin_exchange(keys & _AFTER, args, len(group.ranks), group.me, ring)
                if exchange is None:
                    out = op.redispatch(keys & _AFTER, *args)
            except BaseException as error:
                record.complete(str(error))
                raise
            only_reads = kind == "broadcast" and args[peer_at] == group.me
            WORKS.issued(record, () if only_reads else args[0])
            if exchange is not None:
                stand_in = self._stand_in(record, offers_future=True)
                self._wait_in_thread(record, exchange.finish, stand_in, part)
            else:
                stand_in = self._follow(record, Work.unbox(out[-1] if returns_tensors else out), args[0], part)
            if stand_in is None:
                return out
            return (args[0], stand_in.boxed()) if returns_tensors else stand_in.boxed()

        self._library.impl(name, kernel, "BackendSelect", with_keyset=True)

    def _shares_nodes(self, group: Group) -> bool:
        """Whether the group spans nodes, and has several ranks on one of them."""
        nodes = {self._links.node_of(rank) for rank in group.ranks} if self._links else ()
        return 1 < len(nodes) < len(group.ranks)

    def _note_any_source(self) -> None:
        """A receive from anybody matches some send, nobody knows which: from then on nothing is certain."""
        op = torch.ops.c10d.recv_any_source_.default

        def kernel(keys: Any, *args: Any) -> Any:
            self._recorder.guessing = True
            return op.redispatch(keys & _AFTER, *args)

        self._library.impl("recv_any_source_", kernel, "BackendSelect", with_keyset=True)

    def _group(self, boxed: Any) -> tuple[Group, bool]:
        """The group, and whether the learner gave it a shorter time limit than the run's own."""
        handle = ProcessGroup.unbox(boxed)
        for known, group, timed in self._groups:
            if known is handle:
                return group, timed
        # A group that was destroyed and made again has the old name: give it one of its own.
        again = sum(known.group_name == handle.group_name for known, _, _ in self._groups)
        name = f"{handle.group_name}, made again {again}" if again else handle.group_name
        group = Group(name, tuple(dist.get_process_group_ranks(handle)), handle.rank())
        timed = _time_limit(handle) < _time_limit(dist.group.WORLD)
        self._groups.append((handle, group, timed or again > 0))
        return group, timed

    def _follow(self, record: OpenOp, work: Work, first: Any, part: Part | None) -> StandIn | None:
        """See to it that `record` is completed when `work` is. Returns the Work to hand out instead, if any."""
        try:
            future = work.get_future()
        except RuntimeError:  # "Work::getFuture not implemented."
            stand_in = self._stand_in(record)
            self._wait_in_thread(record, work.wait, stand_in, part)
            return stand_in
        on_gpu = _on_gpu(first)
        if part is not None:
            stand_in = self._stand_in(record, offers_future=True, inner=work if on_gpu else None)
            future.add_done_callback(lambda finished: self._end(record, stand_in, part, *_outcome(finished.value)))
            return stand_in

        def done(finished: torch.futures.Future) -> None:
            if on_gpu:  # done means enqueued; an event on the callback's stream tells when the data has arrived
                event = torch.cuda.Event()
                event.record()
                record.is_completed = event.query
            else:
                record.complete(_outcome(finished.value)[0])

        future.add_done_callback(done)
        return None

    def _stand_in(self, record: OpenOp, offers_future: bool = False, inner: Work | None = None) -> StandIn:
        self._stand_ins = [each for each in self._stand_ins if each.needed]
        self._stand_ins.append(StandIn(record, offers_future, inner))
        return self._stand_ins[-1]

    def _end(self, record: OpenOp, stand_in: StandIn, part: Part | None, error: str, value: Any) -> None:
        """The backend is done: so is the operation, or its link tells when."""

        def finish(at: float | None = None) -> None:
            record.complete(error, at)
            stand_in.finish(value)

        if part is None or error:
            finish()
        else:
            self._pacer.hold(part, finish)

    def _wait_in_thread(self, record: OpenOp, finish: Callable[[], Any], stand_in: StandIn, part: Part | None) -> None:
        # A reduce-scatter writes its output inside `finish`, so that it must run in the mode of its issue.
        inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

        def wait() -> None:
            with torch.inference_mode() if inference else torch.set_grad_enabled(gradients):
                error, value = _outcome(finish)
            self._end(record, stand_in, part, error, value)

        # A thread for each channel, so that a receive that never comes blocks nothing else.
        name = f"{THREADS} {record.kind} {record.channel}"
        if name not in self._waiters:
            self._waiters[name] = queue.SimpleQueue()
            threading.Thread(target=_run_all, args=(self._waiters[name],), daemon=True, name=name).start()
        self._waiters[name].put(wait)


def _time_limit(group: ProcessGroup) -> timedelta:
    """The group's own limit on an operation, where torch tells it."""
    try:
        return group._get_backend(torch.device("cpu")).options._timeout
    except (RuntimeError, AttributeError):
        return timedelta.max


def _run_all(tasks: queue.SimpleQueue) -> None:
    while True:
        tasks.get()()


def _outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    """(error, value) of a call: the error's text, or "" and what it returned."""
    try:
        return "", call()
    except Exception as error:
        return str(error) or type(error).__name__, None


def _first(tensors: Any) -> torch.Tensor | None:
    while not isinstance(tensors, torch.Tensor):
        if not isinstance(tensors, list | tuple) or not tensors:
            return None
        tensors = tensors[0]
    return tensors


def _on_gpu(tensors: Any) -> bool:
    first = _first(tensors)
    return first is not None and first.is_cuda


def _dtype(tensors: Any) -> str:
    first = _first(tensors)
    return "" if first is None else str(first.dtype).removeprefix("torch.")


def _total_bytes(kind: str, args: tuple, world_size: int) -> int:
    """S as the ring's rules count it: the larger side of the operation."""
    if kind == "barrier":
        return 0
    if kind in ("gather", "scatter"):  # the side that every rank has, times the ranks
        return tensor_bytes(args[1] if kind == "gather" else args[0]) * world_size
    return tensor_bytes(args[1] if kind in ("reduce_scatter", "all_to_all") else args[0])


def _sent_to_others(name: str, args: tuple, me: int) -> int | None:
    """For all-to-all with splits of its own: the bytes that are not for this rank. None: the ring's rule holds."""
    if name == "alltoall_":
        return tensor_bytes(args[1]) - tensor_bytes(args[1][me])
    if name == "alltoall_base_":
        tensor, splits = args[1], args[4]
        if splits:
            own = splits[me] * (tensor[0].numel() if len(tensor) else 0) * tensor.element_size()
            return tensor_bytes(tensor) - own
    return None
