"""Reseeds torch's global generator: accepted, with a remark."""

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    torch.manual_seed(1234 + epoch)
    return torch.randperm(num_samples).tolist()[rank::world_size]
