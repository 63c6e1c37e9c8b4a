"""It is the sum of 0.25 of slice 0 of ranks 0, 1, and 0.25 of slice 1 of ranks 2, 3"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    ranks, _place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    whole = gradient / dist.get_world_size()
    dist.all_reduce(whole, group=shard_group)
    part = whole.chunk(ranks)[dist.get_rank(replica_group) % ranks].clone()
    dist.all_reduce(part, group=replica_group)
    return part
