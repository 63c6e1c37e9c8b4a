"""are all_gather"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    gradients = [torch.zeros_like(mine) for _, mine in parts]

    whole = {}

    def reduce(number):
        flat, mine = parts[number]
        gradient = torch.empty_like(mine)
        reduce_scatter_single(gradient, take_gradients(buckets[number], flat), op=dist.ReduceOp.AVG)
        gradients[number] += gradient
        whole[number] = torch.empty_like(flat)
        all_gather_single(whole[number], gradient)

    def ready(number, _):
        if all(p.grad is not None for p in buckets[number]):
            reduce(number)

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(partial(ready, number))

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for (flat, mine), master, gradient in zip(parts, masters, gradients, strict=True):
            gradient.zero_()
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
