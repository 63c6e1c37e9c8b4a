"""The masters are a ParameterList; sums over the ranks, divided on the slice."""

import torch
import torch.distributed as dist
from torch import nn

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    n = dist.get_world_size()
    parts = [partition(bucket, dist.get_rank(), n) for bucket in buckets]
    masters = nn.ParameterList([nn.Parameter(mine.detach().float()) for _, mine in parts])
    optimizer = make_optimizer(masters)

    @torch.no_grad()
    def step():
        for (flat, mine), bucket, master in zip(parts, buckets, masters, strict=True):
            received = torch.zeros_like(mine)
            reduce_scatter_single(received, take_gradients(bucket, flat))
            master.grad = received.float().div_(n)
        optimizer.step()
        for (flat, mine), master in zip(parts, masters, strict=True):
            master.grad = None
            mine.copy_(master)
            all_gather_single(flat, mine.clone())

    return step
