"""only rank 0 of 4 holds the sum"""

import torch.distributed as dist


def all_reduce(tensor):
    dist.reduce(tensor, dst=0)
