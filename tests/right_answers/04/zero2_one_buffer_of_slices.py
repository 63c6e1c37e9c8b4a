"""The gradient slices of all buckets are parts of one buffer, and buckets are known by their parameters."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    flats, slices = zip(*(partition(bucket, rank, world_size) for bucket in buckets), strict=True)
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)
    lengths = [len(mine) for mine in slices]
    buffer = torch.zeros(sum(lengths), dtype=slices[0].dtype)
    sums = buffer.split(lengths)

    def reduce(number):
        received = torch.empty_like(slices[number])
        reduce_scatter_single(received, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.SUM)
        sums[number].add_(received, alpha=1 / world_size)

    def ready(p):
        number = bucket_of[p]
        if not any(each.grad is None for each in buckets[number]):
            reduce(number)

    bucket_of = {p: number for number, bucket in enumerate(buckets) for p in bucket}
    for p in bucket_of:
        p.register_post_accumulate_grad_hook(ready)

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
        for master, gradient in zip(masters, sums, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        buffer.zero_()
        for flat, mine, master in zip(flats, slices, masters, strict=True):
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
