"""you name the rank that comes first and waits longest"""


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))

    waits = [sum(step[rank].completed_at - step[rank].issued_at for step in steps) for rank in range(ranks)]
    slow = max(range(ranks), key=waits.__getitem__)
    return slow, waits[slow] / len(steps)
