"""keep the one whose ranks this rank is among"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    _node, _place = divmod(rank, ranks_per_node)

    for n in range(nodes):
        shard_group = dist.new_group(list(range(n * ranks_per_node, (n + 1) * ranks_per_node)))
    for p in range(ranks_per_node):
        replica_group = dist.new_group(list(range(p, world_size, ranks_per_node)))
    return shard_group, replica_group
