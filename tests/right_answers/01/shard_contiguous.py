"""Contiguous parts of one order, as a tensor, with Python's own generator."""

import random

import torch


def shard_indices(num_samples, rank, world_size, epoch):
    order = list(range(num_samples))
    random.Random(epoch).shuffle(order)
    return torch.tensor_split(torch.tensor(order), world_size)[rank]
