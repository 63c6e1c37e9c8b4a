"""Parts by `split`, the slice by `narrow`; a list instead of a tuple."""

import math

import torch


def partition(parameters, rank, world_size):
    numels = [p.numel() for p in parameters]
    per_rank = math.ceil(sum(numels) / world_size)
    flat = torch.zeros(per_rank * world_size, dtype=parameters[0].dtype, device=parameters[0].device)
    with torch.no_grad():
        for p, part in zip(parameters, flat[: sum(numels)].split(numels), strict=True):
            part.view_as(p).copy_(p)
            p.data = part.view_as(p)
    return [flat, flat.narrow(0, rank * per_rank, per_rank)]
