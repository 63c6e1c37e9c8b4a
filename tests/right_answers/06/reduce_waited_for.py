"""Started, waited for, and divided level by level."""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    ranks, _place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    part = gradient.new_empty(len(gradient) // ranks)
    reduce_scatter_single(part, gradient, group=shard_group)
    part /= ranks
    work = dist.all_reduce(part, group=replica_group, async_op=True)
    work.wait()
    return part.div(dist.get_world_size(replica_group))
