"""An object whose method is `step`."""

import torch
import torch.distributed as dist

from utils import all_gather_single


class Trainer:
    def __init__(self, units, make_optimizer, shard_group, replica_group):
        self.groups = shard_group, replica_group
        for p in [p for unit in units for p in unit.parameters()]:
            dist.broadcast(p.data, src=0)
        self.lives = [
            wrap(unit, dist.get_rank(shard_group), dist.get_world_size(shard_group), self.gather, self.sync)
            for unit in units
        ]
        self.trained = [(mine, gradient) for mine, gradient, _ in self.lives if gradient is not None]
        self.masters = [mine.to(torch.float32, copy=True) for mine, _ in self.trained]
        self.optimizer = make_optimizer(self.masters)

    def gather(self, flat, mine):
        all_gather_single(flat, mine, group=self.groups[0])

    def sync(self, gradient):
        return reduce(gradient, *self.groups)

    @torch.no_grad()
    def step(self):
        for *_, finish in reversed(self.lives):
            finish()
        for master, (_, gradient) in zip(self.masters, self.trained, strict=True):
            master.grad = gradient.to(torch.float32)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for master, (mine, gradient) in zip(self.masters, self.trained, strict=True):
            mine.copy_(master)
            gradient.zero_()


def hsdp(units, make_optimizer, shard_group, replica_group):
    return Trainer(units, make_optimizer, shard_group, replica_group).step
