"""The gradient slices exist only between the first backward and the step, in a dict."""

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    ranks = dist.get_world_size()
    parts = [partition(bucket, dist.get_rank(), ranks) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    slices = {}

    def collect(number, parameter=None):
        bucket, (flat, mine) = buckets[number], parts[number]
        if parameter is not None and any(p.grad is None for p in bucket):
            return
        if all(p.grad is None for p in bucket):
            return
        gradient = mine.new_empty(mine.shape)
        reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.AVG)
        slices[number] = slices[number] + gradient if number in slices else gradient

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(lambda p, number=number: collect(number, p))

    def step():
        for number in range(len(buckets)):
            collect(number)
            if number in slices:
                masters[number].grad = slices.pop(number).float()
        optimizer.step()
        optimizer.zero_grad()
        works = []
        for master, (flat, mine) in zip(masters, parts, strict=True):
            mine.copy_(master)
            works.append(all_gather_single(flat, mine, async_op=True))
        for work in works:
            work.wait()

    return step
