"""One table of all times; the median over the steps in which the rank is last."""

import torch


def straggler(timeline):
    ranks = len(timeline)
    table = torch.tensor(
        [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline],
        dtype=torch.float64,
    )
    two, who = table.topk(2, dim=0)
    counts = who[0].bincount(minlength=ranks)
    slow = int(counts.argmax())
    if 2 * counts[slow] <= table.shape[1]:
        return None
    delays = (two[0] - two[1])[who[0] == slow]
    return slow, delays.quantile(0.5)
