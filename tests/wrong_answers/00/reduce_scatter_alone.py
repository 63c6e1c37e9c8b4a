"""only 3072 of 12288 numbers are the sum"""

import torch
import torch.distributed as dist

from utils import reduce_scatter_single


def all_reduce(tensor):
    parts = tensor.chunk(dist.get_world_size())
    mine = torch.empty_like(parts[0])
    reduce_scatter_single(mine, tensor)
    parts[dist.get_rank()].copy_(mine)
