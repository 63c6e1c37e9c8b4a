"""on 1 node of 4 ranks: the groups are transposed"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size = dist.get_world_size()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    _node, _place = divmod(dist.get_rank(), ranks_per_node)
    nodes = world_size // ranks_per_node

    rows = [dist.new_group([n * nodes + p for p in range(nodes)]) for n in range(ranks_per_node)]
    columns = [dist.new_group([n * nodes + p for n in range(ranks_per_node)]) for p in range(nodes)]
    mine, other = divmod(dist.get_rank(), nodes)
    return rows[mine], columns[other]
