"""Neighbouring parts of an order that torch shuffles."""

import torch


def my_shards(shards, epoch, rank, world_size, worker, workers):
    readers, number = world_size * workers, rank * workers + worker
    each = len(shards) // readers
    if not each:
        raise ValueError(f"there are {readers} readers and {len(shards)} shards, so that some would have none")
    order = torch.randperm(len(shards), generator=torch.Generator().manual_seed(epoch)).tolist()
    return [shards[i] for i in order[number * each : (number + 1) * each]]
