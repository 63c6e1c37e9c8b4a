"""Judges by the record which bucket was sent when: by the order of events, never by how long something took.

At each moment when a gradient becomes ready, the bytes that were issued until then must be those of the buckets that
were full until then, in the order of the buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.checks.lab02.watching import ready_mark
from utils.checks.ranks import STEP, Seen
from utils.checks.verdict import Mistake
from utils.runtime.errors import Frame
from utils.runtime.recorder import Op

NOT_READY = 8  # bytes for each parameter that a rank may spend to tell the others which gradients it has
NUMBER = 4  # bytes of one number of a gradient, in all models of this lab
_SIZE_OF = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
_SHORT = ("float16", "bfloat16")
ALREADY_THERE = (
    " A `.grad` that is not None may be an earlier micro-batch's: whose hook has run in this backward, that is ready."
)


@dataclass(frozen=True)
class Noted:
    """What one rank noted of one call; `buckets` are the sizes of their gradients, in bytes."""

    buckets: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    blocked: tuple[Frame | None, ...] = ()


@dataclass(frozen=True)
class Sent:
    """The bytes of gradients that a rank had issued at each point of a call, and those of the buckets full by then.

    A number counts 4 bytes, also where it travels as a float64.

    issued, full   by gradient that became ready, with what its hook did
    before         issued before backward; after: issued after backward
    """

    operations: int
    before: int
    issued: tuple[int, ...]
    full: tuple[int, ...]
    after: int

    @property
    def all(self) -> int:
        return (self.issued[-1] if self.issued else self.before) + self.after


def sent(seen: Seen, call: int, noted: Noted) -> Sent:
    """What one rank sent in one call."""
    before = _reduced((*seen.after(f"call {call}"), *seen.after(f"{STEP}{call}, backward")))
    late = _reduced(seen.after(f"{STEP}{call}, finish"))
    total, issued, count = _gradient_bytes(before), [], len(before) + len(late)
    for place in range(len(noted.order)):
        ops = _reduced(seen.after(ready_mark(call, place)))
        count += len(ops)
        total += _gradient_bytes(ops)
        issued.append(total)
    full = tuple(full_bytes(noted, place + 1) for place in range(len(noted.order)))
    return Sent(count, _gradient_bytes(before), tuple(issued), full, _gradient_bytes(late))


def full_bytes(noted: Noted, ready: int) -> int:
    """Bytes of the buckets that are full when so many gradients are ready, up to the first that is not."""
    there, number, total = set(noted.order[:ready]), 0, 0
    for bucket in noted.buckets:
        if not set(range(number, number + len(bucket))) <= there:
            break
        number += len(bucket)
        total += sum(bucket)
    return total


def judge_amount(
    seen: Sequence[Seen], call: int, noted: Sequence[Noted], extra: int = 0, earlier: bool = False
) -> None:
    """Raise Mistake unless every bucket was sent, once, and none before it was full.

    extra: bytes for other uses. earlier: gradients of an earlier micro-batch were there already.
    """
    for rank, (each, mine) in enumerate(zip(seen, noted, strict=True)):
        found, sizes = sent(each, call, mine), [sum(bucket) for bucket in mine.buckets]
        if not found.all:
            raise Mistake(_nothing(each))
        short = next((op.dtype for op in _reduced(each.ops) if op.dtype in _SHORT), None)
        if short:
            raise Mistake(
                f"the buckets travel as {short}, which keeps two or three digits: send the gradients in their own type."
            )
        for ready, (issued, full) in enumerate(zip(found.issued, found.full, strict=True), start=1):
            if issued > full + extra and found.all <= 1.5 * sum(sizes):
                _early(found, mine, ready, issued, full, rank, earlier)
        if found.all < sum(sizes):
            _forgotten(found, sizes, rank)
        _too_much(found, mine, extra)


def judge_overlap(seen: Sequence[Seen], call: int, noted: Sequence[Noted], extra: int = 0) -> None:
    """Raise Mistake unless each bucket was issued as soon as it was full, by one all-reduce, and nobody waited then.

    `extra`: bytes that may be sent besides, after backward.
    """
    for rank, (each, mine) in enumerate(zip(seen, noted, strict=True)):
        found = sent(each, call, mine)
        _too_much(found, mine, extra)
        full_early = found.full[-2] if len(found.full) > 1 else 0  # before the last gradient was ready
        if full_early and not found.issued[-1]:
            raise Mistake(
                "the averages are right, but nothing overlaps: when backward ends no all-reduce has been issued yet. "
                "Send each bucket from the hook that fills it."
            )
        if full_early and not found.issued[-2]:
            raise Mistake(
                "the averages are right, but nothing overlaps: no all-reduce is issued before the last gradient is "
                "ready. Send each bucket as soon as it is full itself."
            )
        for ready, (issued, full) in enumerate(zip(found.issued, found.full, strict=True), start=1):
            if issued < full:
                raise Mistake(
                    f"the averages are right, but a bucket is sent too late: with {ready} of {len(mine.order)} "
                    f"gradients ready on rank {rank}, buckets of {full} B are full, and {issued} B are issued."
                )
        if found.operations > len(mine.buckets) + (1 if extra else 0):
            raise Mistake(
                f"the averages are right, but {found.operations} operations carry {len(mine.buckets)} buckets: send a "
                "bucket's gradients as one tensor. Many small all-reduces are what buckets are to avoid."
            )
        late = [op for op in seen[rank].after(f"{STEP}{call}, finish") if op not in _reduced([op])]
        if sum(op.bytes for op in late if op.kind != "barrier") > extra:
            raise Mistake(
                f"the averages are right, but `finish` sends more, by {_kinds(late)}: that overlaps nothing. One "
                "all-reduce for each bucket, issued during backward, brings every rank the sum."
            )
    if noted[0].blocked:  # rank 0's first bucket cannot be over: another rank comes late
        line = noted[0].blocked[0]
        place = f" (line {line.line}: `{line.text}`)" if line else ""
        raise Mistake(
            f"the averages are right, but backward stands still while a bucket is on its way{place}: in the hook issue "
            "with `async_op=True`, and wait in `finish`."
        )


def _reduced(ops: Sequence[Op]) -> list[Op]:
    return [op for op in ops if op.kind in ("all_reduce", "reduce_scatter", "reduce")]


def _gradient_bytes(ops: Sequence[Op]) -> int:
    return sum(op.bytes * NUMBER // _SIZE_OF.get(op.dtype, NUMBER) for op in ops)


def _kinds(ops: Sequence[Op]) -> str:
    return " and ".join(dict.fromkeys(op.kind for op in ops if op.kind != "barrier"))


def _nothing(seen: Seen) -> str:
    others = _kinds(seen.ops)
    if others:
        return f"nothing is all-reduced: each bucket is to be summed by one all-reduce, and yours issues {others}."
    return "nothing is all-reduced: every rank keeps the gradients of its own samples."


def _early(found: Sent, mine: Noted, ready: int, issued: int, full: int, rank: int, earlier: bool) -> None:
    gradients = len(mine.order)
    if found.before:
        raise Mistake(f"{found.before} B are all-reduced before backward begins: there are no gradients yet.")
    if found.operations >= gradients > len(mine.buckets):
        raise Mistake(
            f"every gradient is all-reduced by itself, in {found.operations} operations: wait until a bucket is full, "
            f"and send its gradients as one; there are {len(mine.buckets)} buckets."
        )
    raise Mistake(
        f"a bucket is sent before it is full: with {ready} of {gradients} gradients ready on rank {rank}, full buckets "
        f"have {full} B, and {issued} B are issued. A bucket is full when *every* gradient in it is ready, and comes "
        f"after the buckets before it.{ALREADY_THERE if earlier else ''}"
    )


def _too_much(found: Sent, mine: Noted, extra: int) -> None:
    size = sum(map(sum, mine.buckets))
    if found.all > size + extra:
        raise Mistake(
            f"{found.all} B are all-reduced, where the gradients have {size} B: every bucket is to be sent once."
        )


def _forgotten(found: Sent, sizes: Sequence[int], rank: int) -> None:
    missing = sum(sizes) - found.all
    last = next((n for n in range(1, len(sizes)) if sum(sizes[-n:]) == missing), None)
    which = "the last bucket is" if last == 1 else f"the last {last} of {len(sizes)} buckets are"
    what = which if last else f"{missing} of {sum(sizes)} B are"
    raise Mistake(f"{what} never all-reduced on rank {rank}: its gradients stay each rank's own.")
