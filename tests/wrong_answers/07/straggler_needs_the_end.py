"""your function needs `completed_at`, which is None under NCCL"""

import statistics
from collections import Counter


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))

    late = [[max(op.completed_at for op in step) - op.issued_at for op in step] for step in steps]
    rank, times = Counter(step.index(min(step)) for step in late).most_common(1)[0]
    if 2 * times <= len(steps):
        return None
    return rank, statistics.median(min(step[:rank] + step[rank + 1 :]) - step[rank] for step in late)
