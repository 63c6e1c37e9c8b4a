"""The buffer is split by the parameters' sizes, with the padding as the last part."""

import torch


def partition(parameters, rank, world_size):
    sizes = [p.numel() for p in parameters]
    padding = -sum(sizes) % world_size
    flat = torch.zeros(sum(sizes) + padding, dtype=parameters[0].dtype, device=parameters[0].device)
    for p, part in zip(parameters, flat.split([*sizes, padding]), strict=False):
        part.copy_(p.data.reshape(-1))
        p.data = part.reshape(p.shape)
    return flat, torch.tensor_split(flat, world_size)[rank]
