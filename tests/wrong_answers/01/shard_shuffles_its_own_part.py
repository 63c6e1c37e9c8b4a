"""every rank keeps the samples of epoch 0"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    mine = torch.tensor(range(rank, num_samples, world_size), dtype=torch.int64)
    return mine[torch.randperm(len(mine), generator=torch.Generator().manual_seed(epoch))].tolist()
