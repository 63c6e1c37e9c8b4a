"""Padded as torch's DistributedSampler pads: every share has the same length."""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch)).tolist()
    length = -(-num_samples // world_size) * world_size
    padded = (order * length)[:length]
    return padded[rank::world_size]
