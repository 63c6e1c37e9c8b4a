"""each stands where that of the rank after it belongs"""

import torch
import torch.distributed as dist

from utils import reduce_scatter_single


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
        for (flat, mine), master in zip(parts, masters, strict=True):
            pieces = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
            dist.all_gather(pieces, master.to(mine.dtype))
            torch.cat(pieces[1:] + pieces[:1], out=flat)

    return step
