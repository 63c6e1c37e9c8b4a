"""reduce-scatter in the shard group, all-reduce in the replica group"""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    part = gradient.new_empty(len(gradient) // dist.get_world_size(replica_group))
    reduce_scatter_single(part, gradient, group=replica_group)
    dist.all_reduce(part, group=shard_group)
    return part / dist.get_world_size()
