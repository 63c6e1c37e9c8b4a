"""on no rank: the remainder of 13 / 4 is lost"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    size = num_samples // world_size
    return order[rank * size : (rank + 1) * size].tolist()
