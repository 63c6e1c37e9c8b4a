"""torch's own helpers for rows and columns."""

import torch
import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    _node, _place = divmod(rank, ranks_per_node)

    row, _ = dist.new_subgroups(ranks_per_node)
    columns = torch.arange(world_size).view(nodes, ranks_per_node).T.tolist()
    column, _ = dist.new_subgroups_by_enumeration(columns)
    return row, column
