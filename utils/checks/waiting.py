"""Judges whether an answer waits for what it issues with `async_op=True` or `irecv`, before it touches the tensor.

Whether the numbers are right without waiting is chance. So this is judged first, by what was noted of each operation
(see `utils.runtime.works`), never by how long it took.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.checks.verdict import Mistake
from utils.runtime.places import learner_frame
from utils.runtime.works import WORKS

if TYPE_CHECKING:
    from utils.checks.ranks import Seen
    from utils.runtime.recorder import Op

# Where the exercise is not about sends, the receiver's waiting stands for one; a barrier writes nothing.
NEED_NO_WAIT = ("send", "barrier")


class _Touches(TorchDispatchMode):
    """Notes the line that reads or writes a tensor while an operation that writes it is under way."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if WORKS.in_use and reads_or_writes(func):
            for tensor in tree_leaves((args, kwargs)):
                if isinstance(tensor, torch.Tensor):
                    _note(func, tensor)
        return func(*args, **kwargs)


def _note(func: Any, tensor: torch.Tensor) -> None:
    for op in WORKS.users_of(tensor):
        # The same tensor may be broadcast twice, as tied weights are: it receives the same numbers again.
        again = op.kind == "broadcast" and func is torch.ops.c10d.broadcast_.default
        if op.touched is None and not again:
            op.touched = learner_frame(sys._getframe(1))


@cache
def reads_or_writes(func: Any) -> bool:
    """False for what makes a view, or a new tensor of the same kind, and so needs no number of the old one."""
    name = func._schema.name.partition("::")[2]
    return not (func.is_view or name.startswith("new_") or name.endswith("_like"))


@contextmanager
def touches_noted() -> Iterator[None]:
    """In a rank: note the lines that touch a tensor too early."""
    WORKS.watched = True
    try:
        with _Touches():
            yield
    finally:
        WORKS.watched = False


def unwaited(ops: Sequence[Op], until: float, but: Sequence[str] = NEED_NO_WAIT) -> list[Op]:
    """Those of `ops`, except kinds in `but`, that the code received a Work of and had not waited for at that time."""
    return [
        op
        for op in ops
        if op.handed_out and not op.internal and op.kind not in but and (op.waited_at is None or op.waited_at > until)
    ]


def judge_waiting(seen: Sequence[Seen], sends: bool = False) -> None:
    """Raise Mistake if a rank's answer returns without waiting for an operation, or touches its tensor before.

    sends: sends, too, must be waited for.
    """
    _judge([(each.ops, [op for op in each.unwaited if sends or op.kind != "send"]) for each in seen])


def judge_ops(by_rank: Sequence[Sequence[Op]]) -> None:
    """The same of a program that is over: what it has not waited for by then, nobody will."""
    _judge([(ops, unwaited(ops, math.inf)) for ops in by_rank])


def _judge(seen: Sequence[tuple[Sequence[Op], Sequence[Op]]]) -> None:
    """`seen`: by rank, its operations, and those of them that nobody waited for."""
    for ops, unwaited_for in seen:
        if unwaited_for:
            op = unwaited_for[0]
            alike = [o for o in ops if o.kind == op.kind and o.line == op.line]
            forgotten = [o for o in alike if o in unwaited_for]
            which = _which(op, alike if len(forgotten) < len(alike) else [op])
            if op.kind == "send":
                raise Mistake(
                    f"nobody waits for {which}: an `isend` returns at once, and reads its tensor later. When your "
                    "function returns the caller may write there, and other numbers leave: call `.wait()` of what "
                    "`isend` returned before."
                )
            how = "an `irecv`" if op.kind == "recv" else "with `async_op=True` it"
            raise Mistake(
                f"nobody waits for {which}: {how} returns at once, and its tensor must not be touched before "
                "`.wait()` of what it returned."
            )
    for ops, _ in seen:
        for op in ops:
            if op.touched is not None:
                raise Mistake(
                    f"line {op.touched.line}, `{op.touched.text}`, uses the tensor of {_which(op, [op])} before its "
                    "`.wait()`: until then nobody knows which numbers it holds."
                )


def _which(op: Op, alike: Sequence[Op]) -> str:
    place = f" (line {op.line.line}: `{op.line.text}`)" if op.line else ""
    if len(alike) < 2:
        return f"{op.kind}{place}"
    number = next(i for i, each in enumerate(alike, start=1) if each is op)
    ordinal = {1: "1st", 2: "2nd", 3: "3rd"}.get(number, f"{number}th")
    return f"the {ordinal} of {len(alike)} {op.kind}{place}"
