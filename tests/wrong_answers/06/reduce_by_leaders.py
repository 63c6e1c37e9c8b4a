"""whole gradients cross through one rank"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    ranks, place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    whole = gradient / dist.get_world_size()
    first = dist.get_process_group_ranks(shard_group)[0]
    dist.reduce(whole, dst=first, group=shard_group)
    if place == 0:
        dist.all_reduce(whole, group=replica_group)
    dist.broadcast(whole, src=first, group=shard_group)
    return whole.chunk(ranks)[place]
