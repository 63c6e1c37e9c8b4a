"""Masters and gradients as parts of one tensor each."""

import torch
import torch.distributed as dist

from utils import all_gather_single


def hsdp(units, make_optimizer, shard_group, replica_group):
    for unit in units:
        for p in unit.parameters():
            dist.broadcast(p.data, src=0)

    def gather(flat, mine):
        all_gather_single(flat, mine, group=shard_group)

    def sync(gradient):
        return reduce(gradient, shard_group, replica_group)

    place, ranks = dist.get_rank(shard_group), dist.get_world_size(shard_group)
    wrapped = [wrap(unit, place, ranks, gather, sync) for unit in units]
    trained = [(mine, gradient) for mine, gradient, _ in wrapped if gradient is not None]
    sizes = [len(mine) for mine, _ in trained]
    master = torch.cat([mine.float() for mine, _ in trained])
    optimizer = make_optimizer([master])

    def step():
        for _, _, finish in wrapped:
            finish()
        master.grad = torch.cat([gradient.float() for _, gradient in trained])
        optimizer.step()
        master.grad = None
        for (mine, gradient), part in zip(trained, master.split(sizes), strict=True):
            mine.copy_(part)
            gradient.zero_()

    return step
