"""A bucket none of whose parameters has a gradient is neither reduced nor gathered."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [torch.nn.Parameter(mine.float()) for _, mine in parts]
    optimizer = make_optimizer(masters)

    @torch.no_grad()
    def step():
        for bucket, (flat, mine), master in zip(buckets, parts, masters, strict=True):
            if any(p.grad is not None for p in bucket):
                gradient = torch.empty_like(mine)
                reduce_scatter_single(gradient, take_gradients(bucket, flat))
                master.grad = gradient.float() / dist.get_world_size()
        optimizer.step()
        for (flat, mine), master in zip(parts, masters, strict=True):
            if master.grad is not None:
                master.grad = None
                mine.copy_(master)
                all_gather_single(flat, mine.clone())

    return step
