"""A mesh of two dimensions makes both groups."""

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def groups(ranks_per_node):
    nodes, rest = divmod(dist.get_world_size(), ranks_per_node)
    if rest:
        raise ValueError(f"on nodes of {ranks_per_node} the {dist.get_world_size()} ranks leave {rest} over")
    mesh = init_device_mesh("cpu", (nodes, ranks_per_node), mesh_dim_names=("replicate", "shard"))
    return mesh.get_group("shard"), mesh.get_group("replicate")
