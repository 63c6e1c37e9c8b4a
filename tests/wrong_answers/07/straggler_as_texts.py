"""a pair of str and str"""

import statistics
from collections import Counter


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))
    rank, times = Counter(step.index(max(step)) for step in steps).most_common(1)[0]
    if 2 * times <= len(steps):
        return None
    seconds = statistics.median(step[rank] - max(step[:rank] + step[rank + 1 :]) for step in steps)
    return str(rank), f"{seconds:.6f}"
