"""The pieces in a list, as the older interface wants them, and a Work that is waited for."""

import torch.distributed as dist


def reduce(gradient, shard_group, replica_group):
    part = gradient.new_empty(len(gradient) // dist.get_world_size(shard_group))
    dist.reduce_scatter(part, list(gradient.chunk(dist.get_world_size(shard_group))), group=shard_group)
    work = dist.all_reduce(part, group=replica_group, async_op=True)
    work.wait()
    return part.div_(dist.get_world_size())
