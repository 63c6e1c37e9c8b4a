"""`flat` is of type torch.float32"""

import torch


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = torch.zeros(world_size * length)
    begin = 0
    for p in parameters:
        part = flat[begin : begin + p.numel()]
        part.copy_(p.detach().flatten())
        p.data = part.view_as(p).to(p.dtype)
        begin += p.numel()
    return flat, flat[rank * length : (rank + 1) * length]
