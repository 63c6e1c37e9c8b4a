"""rank 3 gets 2 samples; an equal share is at most 1"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch)).tolist()
    size = num_samples // world_size
    return order[rank * size :] if rank == world_size - 1 else order[rank * size : (rank + 1) * size]
