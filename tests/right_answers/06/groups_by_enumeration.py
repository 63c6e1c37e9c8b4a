"""torch makes the groups of each level from a list of lists."""

import torch.distributed as dist


def groups(ranks_per_node):
    total = dist.get_world_size()
    if ranks_per_node < 1 or total % ranks_per_node:
        raise ValueError(f"{total} is no multiple of {ranks_per_node}")
    rows = [list(range(first, first + ranks_per_node)) for first in range(0, total, ranks_per_node)]
    shard_group, _ = dist.new_subgroups_by_enumeration(rows)
    replica_group, _ = dist.new_subgroups_by_enumeration([list(column) for column in zip(*rows, strict=True)])
    return shard_group, replica_group
