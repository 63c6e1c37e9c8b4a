"""torch's fully_shard does the work"""

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard


def hsdp(units, make_optimizer, shard_group, replica_group):
    rows = dist.get_world_size() // dist.get_world_size(shard_group)
    ranks = [
        [n * dist.get_world_size(shard_group) + p for p in range(dist.get_world_size(shard_group))] for n in range(rows)
    ]
    mesh = DeviceMesh("cpu", ranks, mesh_dim_names=("replicate", "shard"))
    for unit in units:
        fully_shard(unit, mesh=mesh)
    optimizer = make_optimizer([p for unit in units for p in unit.parameters()])

    def step():
        optimizer.step()
        optimizer.zero_grad()

    return step
