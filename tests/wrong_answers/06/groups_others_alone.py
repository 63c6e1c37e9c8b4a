"""a group of no ranks is made"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    node, place = divmod(rank, ranks_per_node)

    rows = [dist.new_group([n * ranks_per_node + p for p in range(ranks_per_node)]) for n in range(nodes)]
    for p in range(ranks_per_node):
        for n in range(nodes):
            group = dist.new_group([other * ranks_per_node + p for other in range(nodes) if other != n])
            if (n, p) == (node, place):
                replicas = group
    return rows[node], replicas
