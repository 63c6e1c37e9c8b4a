"""the whole gradient crosses"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    whole = gradient / dist.get_world_size()
    dist.all_reduce(whole, group=shard_group)
    dist.all_reduce(whole, group=replica_group)
    return whole.chunk(dist.get_world_size(shard_group))[dist.get_rank(shard_group)]
