"""by the padding"""

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
        for bucket, (flat, _), master in zip(buckets, parts, masters, strict=True):
            whole = torch.empty_like(flat)
            all_gather_single(whole, master.to(flat.dtype))
            numel = sum(p.numel() for p in bucket)
            flat[:numel] = whole[flat.numel() - numel :]

    return step
