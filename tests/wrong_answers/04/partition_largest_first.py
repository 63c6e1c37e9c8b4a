"""in another order"""

import torch


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = torch.zeros(world_size * length, dtype=parameters[0].dtype)
    begin = 0
    for p in sorted(parameters, key=lambda p: -p.numel()):
        part = flat[begin : begin + p.numel()]
        part.copy_(p.detach().flatten())
        p.data = part.view_as(p)
        begin += p.numel()
    return flat, flat[rank * length : (rank + 1) * length]
