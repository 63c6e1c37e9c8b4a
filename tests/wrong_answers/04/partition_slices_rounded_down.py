"""each of 3 slices has 108"""

import torch


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    flat, begin = torch.zeros(numel + -numel % world_size, dtype=parameters[0].dtype), 0
    for p in parameters:
        part = flat[begin : begin + p.numel()].view(p.shape)
        part.copy_(p.detach())
        p.data = part
        begin += p.numel()
    length = numel // world_size
    return flat, flat[rank * length : (rank + 1) * length]
