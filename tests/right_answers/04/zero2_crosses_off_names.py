"""Each bucket has a set of the parameters that are still awaited."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [partition(bucket, rank, n) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    sums = [torch.zeros_like(mine) for _, mine in parts]
    optimizer = make_optimizer(masters)
    awaited = [set(bucket) for bucket in buckets]

    def reduce(number):
        flat, mine = parts[number]
        received = torch.empty_like(mine)
        reduce_scatter_single(received, take_gradients(buckets[number], flat), op=dist.ReduceOp.AVG)
        sums[number].add_(received)
        awaited[number].update(buckets[number])

    def crosses_off(number):
        def hook(p):
            awaited[number].discard(p)
            if not awaited[number]:
                reduce(number)

        return hook

    for number, bucket in enumerate(buckets):
        hook = crosses_off(number)
        for p in bucket:
            p.register_post_accumulate_grad_hook(hook)

    def step():
        for number, bucket in enumerate(buckets):
            if 0 < len(awaited[number]) < len(bucket):
                reduce(number)
            masters[number].grad = sums[number].float()
        optimizer.step()
        optimizer.zero_grad()
        for (flat, mine), master, total in zip(parts, masters, sums, strict=True):
            mine.copy_(master)
            all_gather_single(flat, mine)
            total.zero_()

    return step
