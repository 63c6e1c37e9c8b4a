"""torch's own all_reduce does the work"""

import torch.distributed as dist


def all_reduce_ring(tensor):
    dist.all_reduce(tensor)
