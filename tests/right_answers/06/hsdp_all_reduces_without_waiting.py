"""The all-reduce between nodes goes on while backward does; the step waits for it."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single

UNDER_WAY = []  # at most one unit, whose all-reduce nobody has waited for yet


class Unit:
    """A unit with hooks of its own."""

    def __init__(self, module, shard_group, replica_group):
        self.parameters = list(module.parameters())
        self.shard_group, self.replica_group = shard_group, replica_group
        self.trains = self.parameters[0].requires_grad
        place, ranks = dist.get_rank(shard_group), dist.get_world_size(shard_group)
        self.flat, self.mine = shard(self.parameters, place, ranks)
        self.gradient, self.under_way = torch.zeros_like(self.mine), None
        module.register_forward_pre_hook(self.gather)
        module.register_forward_hook(self.free)
        module.register_full_backward_pre_hook(self.gather)
        if self.trains:
            for p in self.parameters:
                p.register_post_accumulate_grad_hook(self.ready)
        else:
            module.register_full_backward_hook(self.free)

    def gather(self, *_):
        if not self.flat.untyped_storage().nbytes():
            self.flat.untyped_storage().resize_(self.flat.nbytes)
            all_gather_single(self.flat, self.mine, group=self.shard_group)

    def free(self, *_):
        self.flat.untyped_storage().resize_(0)

    def ready(self, _):
        if all(p.grad is not None for p in self.parameters):
            self.reduce()

    def reduce(self):
        while UNDER_WAY:
            UNDER_WAY.pop().add()
        part = torch.empty_like(self.mine)
        reduce_scatter_single(part, take_gradients(self.parameters, self.flat), group=self.shard_group)
        self.under_way = part, dist.all_reduce(part, group=self.replica_group, async_op=True)
        UNDER_WAY.append(self)
        self.free()

    def add(self):
        if self.under_way:
            part, work = self.under_way
            work.wait()
            self.gradient += part / dist.get_world_size()
            self.under_way = None


def hsdp(units, make_optimizer, shard_group, replica_group):
    for unit in units:
        for p in unit.parameters():
            dist.broadcast(p.data, 0)
    made = [Unit(unit, shard_group, replica_group) for unit in units]
    trained = [unit for unit in made if unit.trains]
    masters = [unit.mine.float() for unit in trained]
    optimizer = make_optimizer(masters)

    def step():
        for unit in made:
            if any(p.grad is not None for p in unit.parameters):
                unit.reduce()
            unit.free()
        while UNDER_WAY:
            UNDER_WAY.pop().add()
        for unit, master in zip(trained, masters, strict=True):
            master.grad = unit.gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for unit, master in zip(trained, masters, strict=True):
            unit.mine.copy_(master)
            unit.gradient.zero_()

    return step
