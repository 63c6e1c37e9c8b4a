"""Each rank makes its two alone, which `new_group` allows where it is told so."""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    nodes = world_size // ranks_per_node
    node, place = divmod(rank, ranks_per_node)

    row = [node * ranks_per_node + p for p in range(ranks_per_node)]
    column = [n * ranks_per_node + place for n in range(nodes)]
    return (
        dist.new_group(row, use_local_synchronization=True),
        dist.new_group(column, use_local_synchronization=True),
    )
