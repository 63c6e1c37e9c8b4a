"""the sum is returned, but the tensor still holds"""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return sum(parts)
