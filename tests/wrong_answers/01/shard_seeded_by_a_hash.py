"""the order hangs on what differs between processes"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(hash(f"epoch {epoch}") % 2**31))
    return order[rank::world_size].tolist()
