"""The parameters get their views by `set_`, after an in-place fill."""

import torch


def shard(parameters, rank, world_size):
    numel, length = sum(p.numel() for p in parameters), 0
    while length * world_size < numel:
        length += 1
    flat = torch.zeros(world_size * length, dtype=parameters[0].dtype, device=parameters[0].device)
    with torch.no_grad():
        begin = 0
        for p in parameters:
            flat.narrow(0, begin, p.numel()).copy_(p.reshape(-1))
            p.data = flat.as_strided(p.shape, torch.empty(p.shape, device="meta").stride(), begin)
            begin += p.numel()
        mine = flat.narrow(0, rank * length, length).detach().clone()
    flat.untyped_storage().resize_(0)
    return flat, mine
