"""gets 24 numbers of 24"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    whole = gradient / dist.get_world_size()
    dist.all_reduce(whole)
    return whole
