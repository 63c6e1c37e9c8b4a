"""in another order"""

import torch


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = torch.zeros(world_size * length, dtype=parameters[0].dtype)
    begin = 0
    for p in parameters:
        part = flat[begin : begin + p.numel()]
        part.copy_(p.detach().T.flatten() if p.dim() == 2 else p.detach().flatten())
        p.data = part.view(p.T.shape).T if p.dim() == 2 else part.view_as(p)
        begin += p.numel()
    return flat, flat[rank * length : (rank + 1) * length]
