"""The numbers are divided as they are handed on: once on each rank."""

import torch.distributed as dist


def average_ring(tensor):
    mine = tensor.div(dist.get_world_size())
    part = reduce_scatter_ring(mine)
    all_gather_ring(tensor, part)
