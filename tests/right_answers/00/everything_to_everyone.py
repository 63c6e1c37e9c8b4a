"""All-gather and a local sum: right, and dearer than the ring."""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    tensor.copy_(sum(parts))
