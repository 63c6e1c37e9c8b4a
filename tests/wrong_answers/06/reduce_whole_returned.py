"""gets 2400 numbers of 2400"""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    whole = gradient / dist.get_world_size()
    dist.all_reduce(whole)
    return whole
