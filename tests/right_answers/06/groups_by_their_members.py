"""Members alone make a group, and say so."""

import torch.distributed as dist


def groups(ranks_per_node):
    rank, total = dist.get_rank(), dist.get_world_size()
    if total % ranks_per_node != 0:
        raise ValueError(f"{total} ranks on nodes of {ranks_per_node}: the last node is not full")
    first = rank - rank % ranks_per_node
    row = range(first, first + ranks_per_node)
    column = range(rank % ranks_per_node, total, ranks_per_node)
    return tuple(dist.new_group(list(ranks), use_local_synchronization=True) for ranks in (row, column))
