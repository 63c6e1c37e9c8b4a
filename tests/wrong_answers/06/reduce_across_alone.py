"""reduced across the nodes alone"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    place, ranks = dist.get_rank(shard_group), dist.get_world_size(shard_group)
    part = gradient.chunk(ranks)[place].clone()
    dist.all_reduce(part, group=replica_group)
    return part / dist.get_world_size(replica_group)
