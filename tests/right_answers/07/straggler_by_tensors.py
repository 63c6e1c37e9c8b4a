"""One table of all times: all in tensors."""

import torch


def straggler(timeline):
    ranks = len(timeline)
    table = torch.tensor(
        [[op.issued_at for op in ops if op.kind == "all_reduce" and len(op.ranks) == ranks] for ops in timeline],
        dtype=torch.float64,
    )
    counts = table.argmax(dim=0).bincount(minlength=ranks)
    slow = int(counts.argmax())
    if 2 * counts[slow] <= table.shape[1]:
        return None
    others = table[[rank for rank in range(ranks) if rank != slow]]
    return slow, (table[slow] - others.amax(dim=0)).quantile(0.5)
