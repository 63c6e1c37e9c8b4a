"""A group of one rank is a group too"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    node, place = divmod(rank, ranks_per_node)

    rows = [dist.new_group([n * ranks_per_node + p for p in range(ranks_per_node)]) for n in range(nodes)]
    columns = [dist.new_group([n * ranks_per_node + p for n in range(nodes)]) for p in range(ranks_per_node)]
    return rows[node] if ranks_per_node > 1 else None, columns[place] if nodes > 1 else None
