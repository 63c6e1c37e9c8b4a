"""the mean over all ranks is divided by the ranks of one level once more"""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    ranks, _place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    part = gradient.new_empty(len(gradient) // ranks)
    reduce_scatter_single(part, gradient, op=dist.ReduceOp.AVG, group=shard_group)
    dist.all_reduce(part, group=replica_group)
    return part / dist.get_world_size()
