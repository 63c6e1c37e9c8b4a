"""Runs an answer on fresh ranks, several cases in one launch, and turns what goes wrong there into a diagnosis.

A case is a function `case(answer, mark)` that runs in every rank: it prepares something, calls the answer, and returns
what is to be judged. The judging happens afterwards, in the notebook's process, where the results of all ranks lie
side by side. No learner code ever runs in the notebook's process. The ranks are CPU processes joined by gloo, so that a
verdict is the same on every machine.

`mark("step")` inside a case notes a point between the operations that a rank issues. A mark is a barrier on a group of
this one rank: it communicates nothing, and the recorder lists it in its place.
"""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from utils.checks.verdict import Mistake, NotBegun

if TYPE_CHECKING:  # importing the checks must stay cheap
    from collections.abc import Iterator

    from utils.runtime.errors import Failure, RankFailed
    from utils.runtime.recorder import Op

DEADLINE = 20.0  # seconds for all cases of one launch; correct answers need less than one
LINES_SHOWN = 20  # of what the answer prints in the ranks, for each check

Mark = Callable[[str], None]
Case = Callable[[Any, Mark], Any]


@dataclass(frozen=True)
class Seen:
    """What one rank did in one case.

    value    what the case returned
    issued   the operations, each with the mark after which it was issued
    unwaited operations, sends among them, that the answer had not waited for when it returned
    """

    value: Any
    issued: tuple[tuple[str, Op], ...]
    unwaited: tuple[Op, ...] = ()

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(op for _, op in self.issued)

    @property
    def ring_bytes(self) -> float:
        """Bytes that this rank sends, under the ring's rules, for what it issued (computed, not measured)."""
        return sum(op.ring_bytes for op in self.ops)

    def after(self, mark: str) -> tuple[Op, ...]:
        """The operations between that mark and the next."""
        return tuple(op for label, op in self.issued if label == mark)

    def of_call(self, number: int) -> tuple[Op, ...]:
        """The operations of one call of the answer, before its step and after, where a case marks both."""
        return tuple(op for label, op in self.issued if label in (f"call {number}", f"{STEP}{number}"))


def run_cases(
    answer: Any,
    cases: Mapping[str, Case],
    world_size: int,
    deadline: float | None = None,
    true_reduce_scatter: bool = False,
) -> dict[str, list[Seen]]:
    """Run every case in each of `world_size` fresh ranks; by case, what each rank did.

    true_reduce_scatter: gloo's moves what the ring's rule says, as in `launch`.
    Raises NotBegun if the answer, or what it calls, is a stub; Mistake, naming line and case, if it raises, hangs or
    ends its process. The text of neither contains a time or a folder.
    """
    from utils.runtime.errors import CannotSend, RankDied, RankFailed, RanksHang
    from utils.runtime.launch import launch

    several = len(cases) > 1
    try:
        with _few_lines():
            run = launch(
                _in_rank,
                world_size,
                answer,
                tuple(cases.items()),
                backend="gloo",
                timeout=deadline or DEADLINE,
                true_reduce_scatter=true_reduce_scatter,
            )
    except RankFailed as error:
        raise _told(error, world_size, several) from None
    except RanksHang as error:
        raise Hang(f"a hang, on {world_size} ranks: {_sentence(str(error))}") from None
    except RankDied as error:
        why = _SIZES_DIFFER if "SIGABRT" in str(error) else ""
        raise Mistake(f"a rank's process ended inside your function: {_sentence(str(error))}{why}") from None
    except CannotSend as error:
        raise Mistake(f"the function cannot travel to the ranks: {error}") from None
    per_rank = [
        _split(values, labels, group, run.timeline[rank]) for rank, (values, labels, group) in enumerate(run.values)
    ]
    return {name: [seen[name] for seen in per_rank] for name in cases}


def on_a_copy(seen: list[Seen] | tuple[Seen, ...], name: str, remedy: str) -> str | None:
    """Where nothing changed: which collectives ran all the same, so on a copy; None if none did."""
    kinds = list(dict.fromkeys(op.kind for each in seen for op in each.ops if op.kind != "barrier"))
    if not kinds:
        return None
    return f"{' and '.join(kinds)} ran, but on a copy: `{name} = …` only renames. Write into it, as in `{remedy}`."


@contextmanager
def one_thread() -> Iterator[None]:
    """Small sums on one thread in the notebook's process: sooner done on a busy machine, and the same every time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Hang(Mistake):
    """The ranks wait for what can no longer come, or the deadline passed; the text says who waits where."""


_SIZES_DIFFER = (
    " gloo aborts when the sizes in one collective differ: do all ranks issue the same collectives in order?"
)


class _Marks:
    """Notes points between this rank's operations."""

    def __init__(self, rank: int) -> None:
        import torch.distributed as dist

        self.labels: list[str] = []
        self._alone = dist.new_group([rank], use_local_synchronization=True)
        self.group = self._alone.group_name

    def __call__(self, label: str) -> None:
        import torch.distributed as dist

        self.labels.append(label)
        dist.barrier(group=self._alone)


def _in_rank(rank: int, answer: Any, cases: tuple[tuple[str, Case], ...]) -> tuple[dict[str, Any], list[str], str]:
    import torch

    from utils.checks.waiting import touches_noted

    torch.set_num_threads(1)  # the cases are small: threads that wait for a core on a busy machine make them slow
    marks, values = _Marks(rank), {}
    for name, case in cases:
        marks(_CASE + name)
        try:
            with touches_noted():
                values[name] = case(answer, marks)
        except BaseException as error:
            error.add_note(_CASE + name)
            raise
    marks(_CASE)
    return values, marks.labels, marks.group


_CASE = "case: "
STEP = "step "  # begins the marks that an answer passes on its way; all others stand before or after it
STAGGER = 0.2  # seconds


def hold_back(rank: int) -> None:
    """Let that rank come late, so that what another issues and does not wait for cannot be over when it goes on."""
    import torch.distributed as dist

    if dist.get_rank() == rank:
        time.sleep(STAGGER)


def _split(values: dict[str, Any], labels: list[str], group: str, ops: tuple[Op, ...]) -> dict[str, Seen]:
    """Attribute each operation to the case, and within it to the mark, after which it was issued."""
    from utils.checks.waiting import unwaited

    issued: dict[str, list[tuple[str, Op]]] = {name: [] for name in (*values, "")}
    forgotten: dict[str, list[Op]] = {name: [] for name in issued}
    waiting = iter(labels)
    case, label, since = "", "", []
    for op in ops:
        if op.group == group:
            label = next(waiting)
            if not label.startswith(STEP):  # in the middle of an answer, what it has issued may go on
                forgotten[case] += unwaited(since, op.issued_at, but=("barrier",))
                since = []
            if label.startswith(_CASE):
                case, label = label.removeprefix(_CASE), ""
        else:
            issued[case].append((label, op))
            since.append(op)
    return {name: Seen(value, tuple(issued[name]), tuple(forgotten[name])) for name, value in values.items()}


def _told(error: RankFailed, world_size: int, several: bool) -> Exception:
    """The lowest failing rank's own exception, with the learner's line."""
    real = sorted((f for f in error.failures if not f.is_echo), key=lambda f: f.rank)
    first = (real or list(error.failures))[0]
    frame = first.frames[-1] if first.frames else None
    if first.kind == "NotImplementedError" and first.inside is None and frame is not None:
        return NotBegun(f"`{frame.function}` still raises NotImplementedError: write its body.")
    if first.kind == "RanksDisagree":
        lines = _lines_of(str(error), first.message)
        return Mistake(f"{_disagreement(first.message)}{lines}{_on_case(first, several)}.")
    if first.kind == "SystemExit":
        what = f"ends its process: {first.first_line}"
    else:
        what = f"raises {first.kind}: {first.first_line or 'no message'}".rstrip(".")
    same = [f.rank for f in real if f.kind == first.kind]
    who = "your function" if len(same) == world_size else f"on rank {first.rank} of {world_size} your function"
    if frame is None:
        return Mistake(f"{who} {what}{_on_case(first, several)}.")
    text = f": `{frame.text}`" if frame.text else ""
    return Mistake(f"{who} {what} (line {frame.line} of `{frame.function}`{text}){_on_case(first, several)}.")


def _disagreement(message: str) -> str:
    """What two ranks disagree about. Which two noticed it first is chance, so that no rank is named."""
    stories = re.search(r"issues (.*) as collective #\d+ of its group, where rank \d+ issued (.*?)\. All", message)
    ours, theirs = stories.groups() if stories else ("", "")
    if ours.split(" with root")[0] == theirs.split(" with root")[0]:
        difference = "with different roots (`src` or `dst`)"
    elif types := sorted(set(re.findall(r" in (\w+)", f"{ours} {theirs}"))):
        kind = ours.split(" ")[0]
        return (
            f"the ranks issue {kind} of different types in the same place: some give {types[0]}, others {types[-1]}, "
            "whose bits mean other numbers. Make it the same type on every rank (a count: a float everywhere)"
        )
    elif ours.split(" ")[0] == theirs.split(" ")[0]:
        difference = "of different sizes"
    else:
        difference = "of different kinds"
    return (
        f"the ranks issue collectives {difference} in the same place: all ranks must issue the same ones in the same "
        "order"
    )


def _lines_of(report: str, message: str) -> str:
    """The learner's lines at which the ranks issued what they disagree about; where else a rank stood is chance."""
    number = re.search(r"as collective #(\d+) of", message)
    issued = rf" \w+ #{number.group(1)} .*? at" if number else ""
    found = re.findall(r", line (\d+), in \S+\n +(.+)", report)[-1:]  # the innermost
    for where in (rf"(?:waits in|with){issued}", r"raised RanksDisagree: .*? at"):
        found += re.findall(rf"{where} line (\d+) of \S+ \([^)]*\): (.+?)(?: not complete)?$", report, re.MULTILINE)
    lines = {int(line): text for line, text in found}
    return f" (line {', line '.join(f'{n}: `{lines[n]}`' for n in sorted(lines))})" if lines else ""


def _on_case(failure: Failure, several: bool) -> str:
    """The case's name, from the note that travels with the exception's text."""
    names = [line.removeprefix(_CASE) for line in failure.full_text.splitlines() if line.startswith(_CASE)]
    return f", on {names[-1]}" if names and several else ""


def _sentence(report: str) -> str:
    return "; ".join(line.strip().rstrip(":") for line in report.splitlines() if line.strip()) + "."


# What gloo writes, with the time of day, beside the exception of which the verdict speaks.
_CHECK_FAILED = re.compile(r"\[rank \d+\] \[rank\d+\]:\[F\d{4} .*Check failed: ")


@contextmanager
def _few_lines() -> Iterator[None]:
    """Pass on the first lines that the ranks printed, and say how many more there were."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        lines = [line for line in printed.getvalue().splitlines() if not _CHECK_FAILED.match(line)]
        for line in lines[:LINES_SHOWN]:
            sys.stdout.write(line[:200] + "\n")
        if len(lines) > LINES_SHOWN:
            sys.stdout.write(f"… and {len(lines) - LINES_SHOWN} more lines that the ranks printed\n")
