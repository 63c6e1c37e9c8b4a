"""`flat` is not padded"""

import torch


def partition(parameters, rank, world_size):
    flat = torch.cat([p.detach().flatten() for p in parameters])
    begin = 0
    for p in parameters:
        p.data = flat[begin : begin + p.numel()].view_as(p)
        begin += p.numel()
    length = flat.numel() // world_size
    return flat, flat[rank * length : (rank + 1) * length]
