"""the order hangs on what differs between processes"""

import torch

kept = {}


def shard_indices(num_samples, rank, world_size, epoch):
    if (num_samples, epoch) not in kept:
        kept[num_samples, epoch] = torch.randperm(num_samples)
    return kept[num_samples, epoch][rank::world_size].tolist()
