"""you name the rank that comes first and waits longest"""


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))

    slow = min(range(ranks), key=lambda rank: sum(step[rank] for step in steps))
    return slow, 0.0
