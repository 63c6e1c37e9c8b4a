"""Tells what went wrong: who raised, who waits where, in the learner's own lines."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from utils.runtime.errors import Failure
from utils.runtime.job import PendingOp, Place
from utils.runtime.places import file_label, line_label

LOST = 256  # in place of an exit code, which is at most 255: nobody knows it
_MOST_FRAMES = 12
_LONGEST_MESSAGE = 4000  # characters


def failure_report(failures: list[Failure], others: dict[int, str]) -> str:
    """The first failure with its lines, then one line for each other thing that ranks did."""
    ordered = sorted(failures, key=lambda f: (f.is_echo, f.time))
    first = ordered[0]
    same = [f for f in ordered if (f.kind, f.first_line, f.frames) == (first.kind, first.first_line, first.frames)]
    message = first.message.strip()
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]} … (the rest is in error.failures[0].message)"
    lines = [f"{ranks(sorted(f.rank for f in same))} raised {first.kind}: {message}"]
    lines += [f"  {reason}" for reason in first.reasons]
    frames = first.frames
    if len(frames) > _MOST_FRAMES:
        lines.append(f"  (the outer {len(frames) - _MOST_FRAMES} frames are in error.failures[0].full_text)")
    for frame in frames[-_MOST_FRAMES:]:
        lines += [f"  {file_label(frame.file)}, line {frame.line}, in {frame.function}", f"      {frame.text}"]
    if first.inside is not None:
        lines.append(f"  (raised inside {file_label(first.inside.file)}, in {first.inside.function})")
    told = dict(others)
    for failure in ordered:
        if failure not in same:
            told[failure.rank] = _one_line(failure)
    return "\n".join(lines + grouped(told))


def _one_line(failure: Failure) -> str:
    if failure.is_echo:
        return "lost the connection after that"
    where = f" at {line_label(failure.frames[-1])}" if failure.frames else ""
    return f"raised {failure.kind}: {failure.first_line[:200].rstrip('.')}{where}"


def place_text(place: Place | None, stack: str = "") -> str:
    """`waits in all_reduce #3 (16 B) at line 7 of train (Cell In[5]): dist.all_reduce(g)`."""
    if place is None:
        return f"does not answer, stuck outside Python{_stack_text(stack)}"
    where = f" at {line_label(place.frame)}" if place.frame else ""
    if not place.pending:
        return f"runs{where}" if where else "runs outside the function's own lines"
    op = next((op for op in place.pending if op.line == place.frame), place.pending[0])
    if op.line == place.frame or place.frame is None:
        return f"waits in {op_text(op)}{f' at {line_label(op.line)}' if op.line else ''}"
    issued = f" issued at {line_label(op.line)}" if op.line else ""
    return f"is{where}, with {op_text(op)}{issued} not complete"


def op_text(op: PendingOp) -> str:
    """`all_reduce #3 (16 B)`, or `recv #1 from rank 2 (16 B)`."""
    towards = {"send": f" to rank {op.peer}", "recv": f" from rank {op.peer}"}.get(op.kind, "")
    size = f" ({op.bytes} B)" if op.bytes else ""
    return f"{op.kind} #{op.sequence}{towards}{size}"


def _stack_text(stack: str) -> str:
    """The innermost line that faulthandler wrote."""
    lines = [line.strip() for line in stack.splitlines() if line.strip().startswith("File ")]
    return f"; last Python line: {lines[0]}" if lines else ""


def exit_text(code: int) -> str:
    """`was killed by SIGKILL`, or `left with exit code 3`."""
    if code == LOST:
        return "was lost with the connection to its host"
    if code == 255:
        return "left with exit code 255, or with the fork server"
    if code >= 0:
        return f"left with exit code {code}" if code else "left by os._exit(0) before it delivered a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (SIGKILL often means that memory ran out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def grouped(told: dict[int, str]) -> list[str]:
    """One line for all ranks of which the same is told."""
    by_text: dict[str, list[int]] = {}
    for rank in sorted(told):
        by_text.setdefault(told[rank], []).append(rank)
    return [f"{ranks(members)} {_agree(text, len(members))}" for text, members in by_text.items()]


_PLURAL = {"waits": "wait", "runs": "run", "is": "are", "has": "have", "does": "do", "was": "were"}


def _agree(text: str, count: int) -> str:
    """`rank 1 waits`, `ranks 1, 2 wait`."""
    verb, _, rest = text.partition(" ")
    return f"{_PLURAL.get(verb, verb)} {rest}" if count > 1 else text


def ranks(numbers: Iterable[int]) -> str:
    """`rank 2`, or `ranks 0, 1, 3`."""
    numbers = list(numbers)
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
