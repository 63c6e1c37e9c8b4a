"""All buckets are taken before the first is reduced: nothing exists twice, since each `.grad` goes as it is taken."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)

    def step():
        taken = [take_gradients(bucket, flat) for bucket, (flat, _) in zip(buckets, parts, strict=True)]
        for whole, (_, mine), master in zip(taken, parts, masters, strict=True):
            gradient = torch.empty_like(mine)
            reduce_scatter_single(gradient, whole, op=dist.ReduceOp.AVG)
            master.grad = gradient.float()
        del taken, whole
        optimizer.step()
        optimizer.zero_grad()
        gathering = []
        for (flat, mine), master in zip(parts, masters, strict=True):
            mine.copy_(master)
            gathering.append(all_gather_single(flat, mine, async_op=True))
        for work in gathering:
            work.wait()

    return step
