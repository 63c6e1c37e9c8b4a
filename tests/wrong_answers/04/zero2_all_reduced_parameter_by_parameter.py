"""the gradients are all-reduced"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single


def zero2(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    gradients = [torch.zeros_like(mine) for _, mine in parts]

    def add(number, begin, p):
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        mine, start = gradients[number], dist.get_rank() * gradients[number].numel()
        first, last = max(begin, start), min(begin + p.numel(), start + mine.numel())
        if first < last:
            mine[first - start : last - start] += p.grad.flatten()[first - begin : last - begin]
        p.grad = None

    for number, bucket in enumerate(buckets):
        begin = 0
        for p in bucket:
            p.register_post_accumulate_grad_hook(partial(add, number, begin))
            begin += p.numel()

    def step():
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for (flat, mine), master, gradient in zip(parts, masters, gradients, strict=True):
            gradient.zero_()
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
