"""ZeroRedundancyOptimizer"""

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer


def zero1(buckets, make_optimizer):
    trained = [p for bucket in buckets for p in bucket]
    masters = [p.detach().float() for p in trained]
    shown = make_optimizer([torch.zeros(1)])
    optimizer = ZeroRedundancyOptimizer(masters, type(shown), **shown.defaults)

    def step():
        for p, master in zip(trained, masters, strict=True):
            gradient = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
            master.grad, p.grad = gradient.float(), None
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)

    return step
