"""The all-reduce across in its two halves."""

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    ranks, _place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    part = gradient.new_empty(len(gradient) // ranks)
    reduce_scatter_single(part, gradient, group=shard_group)
    mine = part.new_empty(len(part) // dist.get_world_size(replica_group))
    reduce_scatter_single(mine, part, group=replica_group)
    mine.div_(dist.get_world_size())
    all_gather_single(part, mine, group=replica_group)
    return part
