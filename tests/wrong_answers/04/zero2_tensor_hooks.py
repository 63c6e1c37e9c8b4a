"""That is ZeRO-1"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    parts = [partition(bucket, rank, world_size) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    slices = [torch.zeros_like(mine) for _, mine in parts]
    optimizer = make_optimizer(masters)

    def reduce(number):
        gradient = torch.empty_like(slices[number])
        reduce_scatter_single(gradient, take_gradients(buckets[number], parts[number][0]), op=dist.ReduceOp.AVG)
        slices[number].add_(gradient)

    def hook(number, _):
        if all(p.grad is not None for p in buckets[number]):
            reduce(number)

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_hook(partial(hook, number))

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
        for gradient, master in zip(slices, masters, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for gradient, (flat, mine), master in zip(slices, parts, masters, strict=True):
            gradient.zero_()
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
