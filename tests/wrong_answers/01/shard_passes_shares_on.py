"""only moved along"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(0))
    mine = order[(rank + epoch) % world_size :: world_size]
    return mine[torch.randperm(len(mine), generator=torch.Generator().manual_seed(epoch))].tolist()
