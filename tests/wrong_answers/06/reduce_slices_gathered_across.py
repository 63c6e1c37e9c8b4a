"""every slice travels to every rank of it"""

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def reduce(gradient, shard_group, replica_group):
    ranks, _place = dist.get_world_size(shard_group), dist.get_rank(shard_group)

    part = gradient.new_empty(len(gradient) // ranks)
    reduce_scatter_single(part, gradient, group=shard_group)
    found = part.new_empty(len(part) * dist.get_world_size(replica_group))
    all_gather_single(found, part, group=replica_group)
    return found.view(-1, len(part)).sum(0) / dist.get_world_size()
