"""What a run's record says of its steps: how long one took, and for how long a collective was under way."""

from __future__ import annotations

from itertools import pairwise

from utils.checks.lab08.laws import covered
from utils.runtime.recorder import Op
from utils.runtime.run import Run


def step_times(run: Run, steps: int, warm_up: int = 1) -> tuple[float, float]:
    """(seconds, communicating) of the least disturbed of `steps` steps, on the rank on which it took longest.

    Each step stands between two barriers among all ranks; the first `warm_up` are left out.
    """
    marks = [_barriers(ops, run.world_size)[-steps - 1 :] for ops in run.timeline.ops]
    spans = [[(before.completed_at, after.issued_at) for before, after in pairwise(each)] for each in marks]
    longest = [max(end - begin for begin, end in step) for step in zip(*spans, strict=True)]
    best = min(range(warm_up, steps), key=longest.__getitem__)
    rank = max(range(run.world_size), key=lambda each: spans[each][best][1] - spans[each][best][0])
    begin, end = spans[rank][best]
    busy = [
        (op.issued_at, min(op.completed_at, end))
        for op in run.timeline[rank]
        if op.kind != "barrier" and begin <= op.issued_at < end
    ]
    return end - begin, covered(busy)


def _barriers(ops: tuple[Op, ...], ranks: int) -> list[Op]:
    """Those among all ranks, without what torch issues for itself."""
    return [op for op in ops if op.kind == "barrier" and len(op.ranks) == ranks and not op.internal]
