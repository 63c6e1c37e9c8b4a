"""02.accumulate: k micro-batches, of which only the last one's backward communicates, overlapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch.distributed as dist

from utils.checks.lab01 import accumulating
from utils.checks.lab01.cases import on_case
from utils.checks.lab01.traps import FROZEN, Trap, lopsided
from utils.checks.lab01.twin import Taken, Watch, make_optimizer
from utils.checks.lab02.order import NOT_READY, Noted, judge_overlap
from utils.checks.lab02.traps import DEEP, DEEP_TIED, laid, size_of
from utils.checks.lab02.watching import watched
from utils.checks.ranks import STEP, Mark, Seen, run_cases
from utils.checks.verdict import Mistake

LOSS = 8  # bytes of one number; every bucket here is larger
SILENT = " Is `overlap(buckets)` called before the last backward, and `finish()` after it?"


@dataclass(frozen=True)
class Accumulated:
    """One rank after three steps, of 3, 1 and 4 micro-batches: what lab 01 notes, and the last backwards."""

    taken: Taken
    noted: tuple[Noted, ...]


def verify(answer: Any) -> str:
    seen = run_cases(answer, {DEEP.name: partial(observe, DEEP)}, 4)[DEEP.name]
    with on_case(DEEP.name, seen, first=True):
        judge(DEEP, seen)
    traps = (DEEP_TIED, FROZEN)
    cases = run_cases(answer, {trap.name: partial(observe, trap) for trap in traps}, 2)
    for trap in traps:
        with on_case(trap.name, cases[trap.name]):
            judge(trap, cases[trap.name])
    return (
        "the step's gradients are the mean over all micro-batches and ranks, within 1e-5 of a single process's, for 1, "
        "3 and 4 micro-batches on 2 and 4 ranks; 4 micro-batches cost the bytes of one, and the last backward overlaps "
        "with them; also with tied weights and frozen parameters."
    )


def observe(trap: Trap, answer: Any, mark: Mark) -> Accumulated:
    """In a rank: three steps, of 3, 1 and 4 micro-batches."""
    model = trap.build()
    watch = Watch(model, make_optimizer(model), mark)
    buckets = laid(model)
    sizes = tuple(tuple(map(size_of, bucket)) for bucket in buckets)
    each_backward = sum(map(len, buckets))
    noted = []
    for call in range(len(accumulating.CALLS)):
        mine = accumulating.micro_batches(dist.get_world_size(), call)[dist.get_rank()]
        with watched(buckets, call, mark, each_backward * len(mine)) as during, during.backward():
            watch.call(answer, model, watch.optimizer, lopsided, mine, buckets)
        noted.append(Noted(sizes, tuple(during.order), tuple(during.blocked)))
    return Accumulated(watch.taken(), tuple(noted))


def judge(trap: Trap, seen: Sequence[Seen]) -> None:
    """In the notebook: lab 01's judgement of k micro-batches, then when the last backward sent its buckets."""
    found: list[Accumulated] = [each.value for each in seen]
    if any(each.taken.wraps for each in found):
        raise Mistake("torch's DistributedDataParallel does the work here: build it from your own `overlap`.")
    as_in_lab_01 = [_plainly(each) for each in seen]
    accumulating.judge(trap, as_in_lab_01, silent=SILENT)
    for call, k in enumerate(accumulating.CALLS):
        last = []
        for each in found:
            noted = each.noted[call]
            gradients = sum(map(len, noted.buckets))
            if len(noted.order) != k * gradients:
                raise Mistake(
                    f"{len(noted.order) / gradients:.1f} backwards run for {accumulating.micro(k)}: one for each."
                )
            last.append(replace(noted, order=noted.order[-gradients:]))
        shifted = [_last_backward(each, call, (k - 1) * len(last[0].order)) for each in seen]
        judge_overlap(shifted, call, last, extra=NOT_READY * len(last[0].order))


def _plainly(seen: Seen) -> Seen:
    """Without the marks of gradients that became ready: their operations belong to the call."""
    issued = tuple((_call_of(label), op) for label, op in seen.issued)
    return Seen(seen.value.taken, issued, seen.unwaited)


def _call_of(label: str) -> str:
    return f"call {label[len(STEP) :].partition(',')[0]}" if ", ready " in label else label


def _last_backward(seen: Seen, call: int, first: int) -> Seen:
    """The operations of the call with the ready marks counted from the last backward's first; none before them.

    Without what may only be the loss, all-reduced to be printed.
    """
    issued = []
    for label, op in seen.issued:
        if op.bytes <= LOSS:
            continue
        start, ready, place = label.partition(", ready ")
        if start == f"{STEP}{call}" and ready:
            label = f"{start}{ready}{int(place) - first}"
        elif label in (f"call {call}", f"{STEP}{call}"):
            label = f"{STEP}{call}, finish" if label != f"call {call}" else label
        issued.append((label, op))
    return Seen(seen.value, tuple(issued), seen.unwaited)
