"""every rank gets the same shard"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    return order[: num_samples // world_size].tolist()
