"""each rank makes only the groups that it is in"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size = dist.get_world_size()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    node, place = divmod(dist.get_rank(), ranks_per_node)
    nodes = world_size // ranks_per_node

    row = dist.new_group([node * ranks_per_node + p for p in range(ranks_per_node)])
    column = dist.new_group([n * ranks_per_node + place for n in range(nodes)])
    return row, column
