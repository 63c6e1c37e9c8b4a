"""the slice is a view of `gradient`"""

import torch.distributed as dist

from utils import reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    ranks, place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    gradient /= dist.get_world_size()
    part = gradient.chunk(ranks)[place]
    reduce_scatter_single(part, gradient, group=shard_group)
    dist.all_reduce(part, group=replica_group)
    return part
