"""The all-reduce comes before the reduce-scatter"""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    part = gradient.new_empty(len(gradient) // dist.get_world_size(shard_group))
    gradient = gradient.clone()
    dist.all_reduce(gradient, group=replica_group)
    reduce_scatter_single(part, gradient, group=shard_group)
    return part / dist.get_world_size()
