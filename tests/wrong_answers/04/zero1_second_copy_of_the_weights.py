"""keeps a whole storage alive"""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    parts = [partition(bucket, rank, world_size) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    copies = [flat.clone() for flat, _ in parts]

    def step():
        for bucket, (flat, mine), master in zip(buckets, parts, masters, strict=True):
            gradient = torch.empty_like(mine)
            reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.AVG)
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for copy, (flat, mine), master in zip(copies, parts, masters, strict=True):
            mine.copy_(master)
            all_gather_single(copy, mine)
            flat.copy_(copy)

    return step
