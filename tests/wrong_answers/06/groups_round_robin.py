"""rank 0's shard group is [0, 2]"""

import torch.distributed as dist


def groups(ranks_per_node):
    world_size = dist.get_world_size()
    if world_size % ranks_per_node:
        raise ValueError(f"{world_size} ranks do not fill nodes of {ranks_per_node}.")
    _node, _place = divmod(dist.get_rank(), ranks_per_node)
    nodes = world_size // ranks_per_node

    nodes_of = [[r for r in range(world_size) if r % nodes == n] for n in range(nodes)]
    rows = [dist.new_group(ranks) for ranks in nodes_of]
    columns = [dist.new_group([ranks[p] for ranks in nodes_of]) for p in range(ranks_per_node)]
    me = dist.get_rank()
    return rows[me % nodes], columns[me // nodes]
