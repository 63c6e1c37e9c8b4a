"""By way of rank 0."""

import torch.distributed as dist


def all_reduce(tensor):
    dist.reduce(tensor, dst=0)
    dist.broadcast(tensor, src=0)
