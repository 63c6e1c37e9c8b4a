"""the median over those steps alone in which the straggler comes last"""

import statistics
from collections import Counter


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))
    rank, times = Counter(step.index(max(step)) for step in steps).most_common(1)[0]
    if 2 * times <= len(steps):
        return None
    return rank, statistics.median(max(step) - sorted(step)[-2] for step in steps if step.index(max(step)) == rank)
