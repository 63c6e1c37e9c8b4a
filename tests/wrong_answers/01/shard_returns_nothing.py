"""it is None (is there a `return`?)"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    order[rank::world_size].tolist()
