"""Operations matched by their group and their number in it."""

import statistics
from collections import defaultdict


def straggler(timeline):
    steps = defaultdict(dict)
    for rank, ops in enumerate(timeline):
        for op in ops:
            if op.kind == "all_reduce" and len(op.ranks) == len(timeline):
                steps[op.group, op.sequence][rank] = op.issued_at
    last = [max(step, key=step.get) for step in steps.values()]
    slow = statistics.mode(last)
    if last.count(slow) * 2 <= len(last):
        return None
    others = [max(at for rank, at in step.items() if rank != slow) for step in steps.values()]
    return slow, statistics.median(step[slow] - other for step, other in zip(steps.values(), others, strict=True))
