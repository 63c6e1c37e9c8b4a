"""the parameters are no views of `flat`"""

import torch


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = torch.zeros(world_size * length, dtype=parameters[0].dtype)
    begin = 0
    for i, p in enumerate(parameters):
        part = flat[begin : begin + p.numel()]
        part.copy_(p.detach().flatten())
        parameters[i] = torch.nn.Parameter(part.view_as(p))
        begin += p.numel()
    return flat, flat[rank * length : (rank + 1) * length]
