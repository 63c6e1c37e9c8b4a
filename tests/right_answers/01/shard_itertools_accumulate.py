import itertools

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch)).tolist()
    sizes = [num_samples // world_size + (r < num_samples % world_size) for r in range(world_size)]
    ends = list(itertools.accumulate(sizes))
    return order[ends[rank] - sizes[rank] : ends[rank]]
