"""numbers; each of"""

import torch


def partition(parameters, rank, world_size):
    flat = torch.cat([p.detach().flatten() for p in parameters])
    flat = torch.nn.functional.pad(flat, (0, -flat.numel() % world_size))
    at, ends = 0, [0]
    for p in parameters:
        p.data = flat[at : at + p.numel()].view(p.shape)
        at += p.numel()
        ends.append(at)
    per_rank = -(-len(parameters) // world_size)
    first, last = rank * per_rank, min((rank + 1) * per_rank, len(parameters))
    return flat, flat[ends[min(first, len(parameters))] : ends[max(last, 0)]]
