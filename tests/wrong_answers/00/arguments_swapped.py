"""in `reduce_scatter_single(output, input)` the output needs 1/N of the input's elements"""

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def all_reduce(tensor):
    part = tensor.new_empty(len(tensor) // dist.get_world_size())
    reduce_scatter_single(tensor, part)
    all_gather_single(tensor, part)
