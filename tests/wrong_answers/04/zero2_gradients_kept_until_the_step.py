"""whole gradients of about"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    gradients = [torch.zeros_like(mine) for _, mine in parts]
    missing = [len(bucket) for bucket in buckets]

    def reduce(number):
        flat, mine = parts[number]
        whole, gradient, begin = torch.zeros_like(flat), torch.empty_like(mine), 0
        for p in buckets[number]:
            if p.grad is not None:
                whole[begin : begin + p.numel()] = p.grad.flatten()
            begin += p.numel()
        reduce_scatter_single(gradient, whole, op=dist.ReduceOp.AVG)
        gradients[number] = gradient

    def ready(number, _):
        missing[number] -= 1
        if missing[number] == 0:
            missing[number] = len(buckets[number])
            reduce(number)

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(partial(ready, number))

    def step():
        for number, bucket in enumerate(buckets):
            if missing[number] < len(bucket):
                missing[number] = len(bucket)
                reduce(number)
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for bucket, (flat, mine), master, gradient in zip(buckets, parts, masters, gradients, strict=True):
            gradient.zero_()
            mine.copy_(master)
            all_gather_single(flat, mine)
            for p in bucket:
                p.grad = None

    return step
