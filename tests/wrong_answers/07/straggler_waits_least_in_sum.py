"""one long pause decides"""


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))

    waits = [sum(max(step) - step[rank] for step in steps) for rank in range(ranks)]
    slow = min(range(ranks), key=waits.__getitem__)
    return slow, max(waits) / len(steps)
