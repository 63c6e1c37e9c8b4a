"""you look at the last step alone"""


def straggler(timeline):
    ranks = len(timeline)
    ends = [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline]
    steps = list(zip(*ends, strict=True))

    step = steps[-1]
    return step.index(max(step)), max(step) - sorted(step)[-2]
