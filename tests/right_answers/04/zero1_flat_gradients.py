"""Gradients live in flat buffers of which the `.grad`s are views; the reduce-scatter writes into its own slice."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    weights, gradients = [], []
    for bucket in buckets:
        flat, mine = partition(bucket, rank, world_size)
        gradient = torch.zeros_like(flat)
        begin = 0
        for p in bucket:
            p.grad = gradient[begin : begin + p.numel()].view_as(p)
            begin += p.numel()
        weights.append((flat, mine))
        gradients.append((gradient, gradient.chunk(world_size)[rank]))
    masters = [mine.float() for _, mine in weights]
    optimizer = make_optimizer(masters)

    def step():
        for (gradient, mine), master in zip(gradients, masters, strict=True):
            reduce_scatter_single(mine, gradient)
            master.grad = mine.float() / world_size
        optimizer.step()
        optimizer.zero_grad()
        for (gradient, _), (flat, mine), master in zip(gradients, weights, masters, strict=True):
            gradient.zero_()
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
