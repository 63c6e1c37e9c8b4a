"""holds the average, 4 times less than the sum"""

import torch.distributed as dist


def all_reduce_ring(tensor):
    all_gather_ring(tensor, reduce_scatter_ring(tensor) / dist.get_world_size())
