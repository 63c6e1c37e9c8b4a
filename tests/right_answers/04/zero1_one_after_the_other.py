"""Each reduce-scatter is waited for before the next begins."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, (flat, mine), master in zip(buckets, parts, masters, strict=True):
            gradient = torch.empty_like(mine)
            reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.AVG)
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        gathering = []
        for (flat, mine), master in zip(parts, masters, strict=True):
            mine.copy_(master)
            gathering.append(all_gather_single(flat, mine, async_op=True))
        for work in gathering:
            work.wait()

    return step
