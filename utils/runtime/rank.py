"""The life of a rank: take a job, join the group, run the function, deliver, stay until dismissed.

A rank never leaves by itself. One that left early would make the others fail with "Connection closed by peer", which
hides the first cause; and freeing a DDP module after `destroy_process_group` can hang. So a rank delivers its result
and waits; when all have delivered, the parent says "leave" and it is gone by `os._exit`.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import inspect
import multiprocessing
import multiprocessing.forkserver
import os
import pickle
import signal
import sys
import threading
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist

from utils.runtime import ship, tap, wire
from utils.runtime.agreement import IssueTables
from utils.runtime.errors import Failure
from utils.runtime.job import Account, Job, PendingOp, Place
from utils.runtime.kernel_link import INTERFACE
from utils.runtime.leaving import die_with_parent, forked_children_die_with_this_process, leave_at_once
from utils.runtime.pacer import Pacer
from utils.runtime.places import learner_frame, reasons_of, split_frames, text_of
from utils.runtime.recorder import Recorder, clock
from utils.runtime.waiting import cpu_seconds, waits

ATTENDANT = "attend the parent"
IN_RANK = "UTILS_IN_RANK"  # set in a rank's environment, so that a launch inside a launch is refused


def rank_main(index: int, pipes: list[Connection], refusal: OSError | None = None) -> None:
    """What the process does. `pipes`: the ranks' ends, of which it keeps its own. `refusal`: why it is in no node."""
    _become_independent()
    for other, pipe in enumerate(pipes):
        if other != index:
            pipe.close()
    try:
        job = pickle.loads(pipes[index].recv_bytes())
    except (EOFError, OSError):  # the notebook's kernel is gone
        os._exit(1)
    _Rank(job, pipes[index]).live(refusal)


class _Rank:
    def __init__(self, job: Job, pipe: Connection) -> None:
        self._job, self._pipe = job, pipe
        self._pipe_lock = threading.Lock()
        self._go = threading.Event()
        self._recorder = Recorder(IssueTables(job.folder))
        self._start = 0.0
        self._store_port = job.seat.store[1] if job.seat else None  # what goes there is not between ranks
        self._counters: dict[str, wire.WireBytes] | None = None

    def live(self, refusal: OSError | None) -> None:
        self._capture_output()
        threading.Thread(target=self._attend, daemon=True, name=ATTENDANT).start()
        try:
            if refusal is not None:
                raise refusal
            fn, args = self._prepare()
            self._counters = wire.read_counters(self._store_port)
            self._say("ready")
            self._go.wait()
            value = _call(fn, self._job.rank, args)
            self._say("returned", _pack_value(value))
        except BaseException as error:  # KeyboardInterrupt and SystemExit of learner code are failures too
            self._say("raised", self._failure(error))
        threading.Event().wait()  # until dismissed

    def _prepare(self) -> tuple[Any, tuple]:
        """Become a process like the notebook's, in a group with the other ranks."""
        job = self._job
        _take_environment(job)
        torch.set_num_threads(job.threads)
        for setup in ship.unpack(job.setup):
            setup(job.rank)
        links = job.links
        pacer = Pacer(links, job.folder, tap.THREADS) if links and links.emulated else None
        tap.Tap(self._recorder, pacer, job.true_reduce_scatter, links)
        join_group(job)
        # Imports of the learner's modules come last: they may use the group's rank.
        return ship.unpack(job.call)

    def _attend(self) -> None:
        """Answer the parent. Runs in a thread of its own, so that a rank stuck in a collective still answers."""
        try:
            while True:
                order, detail = pickle.loads(self._pipe.recv_bytes())
                if order == "go":
                    self._start = detail
                    self._go.set()
                elif order == "where":
                    self._say("place", self._place())
                elif order == "account":
                    self._say("account", self._account())
                else:  # dismissed; the parent ends what this rank has started
                    os._exit(0)
        except (EOFError, OSError):
            os._exit(1)

    def _say(self, what: str, detail: Any = None) -> None:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        data = pickle.dumps((what, detail))
        with self._pipe_lock:
            self._pipe.send_bytes(data)

    def _place(self) -> Place:
        main = threading.main_thread().ident
        innermost = sys._current_frames().get(main)
        frame = learner_frame(innermost)
        open_ops = self._recorder.pending()
        pending = tuple(
            PendingOp(op.kind, op.bytes, op.ranks, op.channel, op.sequence, op.peer, op.line) for op in open_ops
        )
        uncertain = self._recorder.guessing or any(op.has_time_limit for op in open_ops) or _other_threads()
        blocked = not uncertain and waits(innermost, frame)
        return Place(dict(self._recorder.issued), pending, frame, blocked, cpu_seconds(main))

    def _account(self) -> Account:
        ops = tuple(op.closed(self._start) for op in list(self._recorder.ops))
        return Account(ops, wire.wire_bytes_since(self._counters, self._store_port))

    def _failure(self, error: BaseException) -> Failure:
        when = clock()
        report = traceback.TracebackException.from_exception(error)
        frames, inside = split_frames(report.stack)
        if isinstance(error, SystemExit):
            message = f"the function called exit({'' if error.code is None else repr(error.code)})"
        else:
            message = text_of(error)
        full_text = "".join(report.format())
        return Failure(
            self._job.rank, when, type(error).__name__, message, frames, inside, full_text, reasons_of(error)
        )

    def _capture_output(self) -> None:
        """Send all that this process writes, C code's lines too, into the rank's file; the parent shows it."""
        path = os.path.join(self._job.folder, f"printed.{self._job.rank}")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        # A rank that is stuck in C with Python's lock held cannot answer; this signal makes it write its place.
        stack = open(os.path.join(self._job.folder, f"stack.{self._job.rank}"), "w")  # noqa: SIM115
        faulthandler.enable(stack)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)


def join_group(job: Job) -> None:
    """Make the default process group: a file for the meeting place, the node's interface or loopback for traffic."""
    if sys.platform != "win32":
        in_node = job.links is not None and job.links.kind == "kernel"
        interface = INTERFACE if in_node else "lo" if sys.platform == "linux" else "lo0"
        interface = (job.seat and job.seat.interface) or interface
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", interface)
    options = {}
    if job.backend == "nccl":
        gpu = job.seat.local_rank if job.seat else job.rank
        torch.cuda.set_device(gpu)
        options["device_id"] = torch.device("cuda", gpu)
    dist.init_process_group(
        job.backend,
        store=_meeting_place(job),
        rank=job.rank,
        world_size=job.world_size,
        timeout=timedelta(seconds=job.group_timeout),
        **options,
    )


def _meeting_place(job: Job) -> dist.Store:
    """Where the ranks find each other: a file on one machine, the job's own key-value store on several."""
    if job.seat is None:
        return dist.FileStore(os.path.join(job.folder, "store"), job.world_size)
    host, port, prefix = job.seat.store
    return dist.PrefixStore(prefix, dist.TCPStore(host, port, is_master=False))


def _take_environment(job: Job) -> None:
    """The fork server froze its environment, folder and path when it started; the notebook's may have changed."""
    os.environ.clear()
    os.environ.update(job.environment)
    # What a job launcher would set, true for this run. Values left over in the notebook would be wrong here.
    # In a real job the interfaces are what its owner has set.
    interfaces = () if job.seat else ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    for name in ("MASTER_ADDR", "MASTER_PORT", *interfaces):
        os.environ.pop(name, None)
    local_rank, per_node, node = _local(job)
    for name, value in {
        "RANK": job.rank,
        "LOCAL_RANK": local_rank,
        "WORLD_SIZE": job.world_size,
        "LOCAL_WORLD_SIZE": per_node,
        "GROUP_RANK": node,  # in torchrun's words
        IN_RANK: job.folder,
    }.items():
        os.environ[name] = str(value)
    sys.path[:] = job.path
    with contextlib.suppress(OSError):  # a folder that was removed under the notebook
        os.chdir(job.working_directory)
    import utils

    if os.path.dirname(os.path.abspath(utils.__file__)) != job.suite:
        raise ImportError(
            f"the ranks found the package `utils` at {os.path.dirname(utils.__file__)}, the notebook at {job.suite}: "
            "rename or uninstall the other one, then restart the kernel."
        )


def _local(job: Job) -> tuple[int, int, int]:
    """The rank's number on its node, how many there are, and the node."""
    if job.seat is not None:
        return job.seat.local_rank, job.seat.local_world_size, job.seat.node
    if job.links is not None:
        per_node = job.links.ranks_per_node
        return job.rank % per_node, per_node, job.links.node_of(job.rank)
    return job.rank, job.world_size, 0


def _call(fn: Any, rank: int, args: tuple) -> Any:
    """`fn(rank, *args)`, or `fn(*args)` where the function takes no rank."""
    try:
        signature = inspect.signature(fn, follow_wrapped=False)
    except (TypeError, ValueError):  # some callables in C tell no signature
        return fn(rank, *args)
    for call in ((rank, *args), args):
        if call is args and "rank" in signature.parameters:
            break
        try:
            signature.bind(*call)
        except TypeError:
            continue
        return fn(*call)
    name = getattr(fn, "__name__", type(fn).__name__)
    given = f"the rank and {len(args)} more" if args else "the rank"
    raise TypeError(f"{name}{signature} cannot be called with {given}: launch(fn, n, *args) calls fn(rank, *args).")


def _pack_value(value: Any) -> bytes:
    try:
        return ship.pack(value, back=True).data
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise TypeError(
            f"the function returned a {type(value).__name__}, which cannot be sent back ({reason}). "
            "Return plain data and tensors."
        ) from None


def _become_independent() -> None:
    """Keep nothing of the fork server's or of multiprocessing's that would matter to the learner's code."""

    atexit.unregister(leave_at_once)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt goes to the notebook, which ends the ranks
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    multiprocessing.set_start_method(None, force=True)  # as in any program: data loaders fork where that is usual
    # Forked processes share the server's random numbers: without this all ranks would draw the same ones.
    torch.default_generator.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    parent = multiprocessing.parent_process()
    if sys.platform == "linux" and parent is not None and os.getppid() != parent.pid:  # forked by the server
        # A rank that holds this end of the server's pipe would keep the server alive after the notebook's death.
        server = multiprocessing.forkserver._forkserver
        if server._forkserver_alive_fd is not None:
            os.close(server._forkserver_alive_fd)
            server._forkserver_alive_fd = None
        die_with_parent()
    if hasattr(os, "register_at_fork"):
        forked_children_die_with_this_process()


def _other_threads() -> bool:
    """True if the learner's code has started threads: one of them may do what the others wait for."""
    ours = (ATTENDANT, tap.THREADS)
    return any(
        thread is not threading.main_thread() and not thread.name.startswith(ours) for thread in threading.enumerate()
    )
