"""have changed places"""

import torch


def partition(parameters, rank, world_size):
    length = -(-sum(p.numel() for p in parameters) // world_size)
    flat, begin = torch.zeros(world_size * length, dtype=parameters[0].dtype), 0
    for p in parameters:
        part = flat[begin : begin + p.numel()].view(p.shape)
        part.copy_(p.detach())
        p.data = part
        begin += p.numel()
    return flat[rank * length : (rank + 1) * length], flat
