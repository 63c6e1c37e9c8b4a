"""the ranks do not cut one common order"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch + 1000 * rank))
    return order[rank::world_size].tolist()
