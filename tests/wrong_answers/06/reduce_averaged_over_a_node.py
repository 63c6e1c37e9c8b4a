"""the mean is taken over one level alone, and the other is summed"""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    part = gradient.new_empty(len(gradient) // dist.get_world_size(shard_group))
    reduce_scatter_single(part, gradient, group=shard_group)
    dist.all_reduce(part, group=replica_group)
    return part / dist.get_world_size(replica_group)
