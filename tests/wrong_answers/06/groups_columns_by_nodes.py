"""on 1 node of 4 ranks: rank 0's replica group is [0, 1, 2, 3]"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    node, place = divmod(rank, ranks_per_node)

    rows = [dist.new_group([n * ranks_per_node + p for p in range(ranks_per_node)]) for n in range(nodes)]
    columns = [dist.new_group(list(range(p, world_size, nodes))) for p in range(ranks_per_node)]
    return rows[node], columns[place]
