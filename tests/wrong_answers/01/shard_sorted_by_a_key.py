"""samples that meet again on a rank are visited in the same order each time"""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))
    return sorted(order[rank::world_size].tolist(), key=lambda sample: (sample * 37) % 101)
