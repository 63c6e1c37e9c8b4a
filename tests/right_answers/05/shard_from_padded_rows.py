"""A matrix of world_size rows, of which one is kept."""

import torch


def shard(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    rows = torch.zeros(world_size, -(-numel // world_size), dtype=parameters[0].dtype)
    flat = rows.view(-1)
    parts = flat[:numel].split([p.numel() for p in parameters])
    for p, part in zip(parameters, parts, strict=True):
        part.copy_(p.data.reshape(-1))
        p.data = part.view(p.shape)
    mine = torch.empty_like(rows[rank]).copy_(rows[rank])
    flat.untyped_storage().resize_(0)
    return flat, mine
