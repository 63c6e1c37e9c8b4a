"""takes part in autograd"""

import torch


def partition(parameters, rank, world_size):
    flat = torch.cat([p.flatten() for p in parameters])
    flat = torch.nn.functional.pad(flat, (0, -flat.numel() % world_size))
    at = 0
    for p in parameters:
        p.data = flat.data[at : at + p.numel()].view(p.shape)
        at += p.numel()
    return flat, flat.view(world_size, -1)[rank]
