"""is not a sample; they are numbered 0 to 11"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = 1 + torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    return order[rank::world_size].tolist()
