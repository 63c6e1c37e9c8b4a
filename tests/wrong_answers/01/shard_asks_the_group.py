"""every rank gets the same shard"""

import torch
import torch.distributed as dist


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    return order[dist.get_rank() :: world_size].tolist()
