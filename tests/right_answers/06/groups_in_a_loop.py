"""Columns first, and a rank keeps what it is in."""

import torch.distributed as dist


def groups(ranks_per_node):
    rank, total = dist.get_rank(), dist.get_world_size()
    if total % ranks_per_node:
        raise ValueError(f"{total} ranks cannot be spread evenly over nodes of {ranks_per_node}")
    shard_group = replica_group = None
    for place in range(ranks_per_node):
        members = list(range(place, total, ranks_per_node))
        made = dist.new_group(members)
        if rank in members:
            replica_group = made
    for node in range(total // ranks_per_node):
        members = [node * ranks_per_node + place for place in range(ranks_per_node)]
        made = dist.new_group(members)
        if rank in members:
            shard_group = made
    return shard_group, replica_group
