"""Only all-reduces among *all* ranks end a step"""

import statistics
from collections import Counter


def straggler(timeline):
    steps = list(zip(*([op.issued_at for op in ops] for ops in timeline), strict=False))

    rank, times = Counter(step.index(max(step)) for step in steps).most_common(1)[0]
    if 2 * times <= len(steps):
        return None
    return rank, statistics.median(step[rank] - max(step[:rank] + step[rank + 1 :]) for step in steps)
