"""the shards of frozen units have no place in it"""

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
    trained = [
        (mine, mine.float(), gradient if gradient is not None else torch.zeros_like(mine))
        for mine, gradient, _ in wrapped
    ]
    optimizer = make_optimizer([master for _, master, _ in trained])

    def step():
        for _, _, finish in wrapped:
            finish()
        for _, master, gradient in trained:
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for mine, master, gradient in trained:
            mine.copy_(master)
            gradient.zero_()

    return step
