"""and the fewest zeros that make it a multiple of"""

import torch


def partition(parameters, rank, world_size):
    parts = []
    for p in parameters:
        numbers = p.detach().flatten()
        parts.append(torch.cat([numbers, numbers.new_zeros(-len(numbers) % world_size)]))
    flat = torch.cat(parts)
    begin = 0
    for p, part in zip(parameters, parts, strict=True):
        p.data = flat[begin : begin + p.numel()].view_as(p)
        begin += len(part)
    return flat, flat.chunk(world_size)[rank]
