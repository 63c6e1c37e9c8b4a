"""`dist.all_reduce` made it"""

import torch.distributed as dist


def all_reduce(tensor):
    dist.all_reduce(tensor)
