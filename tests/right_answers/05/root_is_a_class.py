"""A class with a method for each moment."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


class Part:
    def __init__(self, module, group, keep):
        self.module, self.group, self.keep = module, group, keep
        self.flat, self.mine = shard(group, dist.get_rank(), dist.get_world_size())
        self.trains = group[0].requires_grad
        self.master, self.gradient = self.mine.float(), torch.zeros_like(self.mine)

    def gather(self, *_):
        if not self.flat.untyped_storage().nbytes():
            self.flat.untyped_storage().resize_(self.flat.nbytes)
            all_gather_single(self.flat, self.mine)

    def free(self, *_):
        self.flat.untyped_storage().resize_(0)

    def forward_is_over(self, *_):
        if not (self.keep and torch.is_grad_enabled()):
            self.free()

    def reduce(self):
        received = torch.empty_like(self.mine)
        reduce_scatter_single(received, take_gradients(self.group, self.flat), op=dist.ReduceOp.AVG)
        self.gradient += received
        self.free()

    def ready(self, _):
        if all(p.grad is not None for p in self.group):
            self.reduce()

    def watch(self):
        self.module.register_forward_pre_hook(self.gather)
        self.module.register_forward_hook(self.forward_is_over)
        if not self.keep:
            self.module.register_full_backward_pre_hook(self.gather)
        if not self.trains:
            self.module.register_full_backward_hook(self.free)
            return
        for p in self.group:
            p.register_post_accumulate_grad_hook(self.ready)


def root(model, units, make_optimizer):
    modules = [*units, model]
    groups = split(model, units)
    parts = [Part(m, group, m is model) for m, group in zip(modules, groups, strict=True) if group]
    for part in parts:
        part.watch()
    trained = [part for part in parts if part.trains]
    optimizer = make_optimizer([part.master for part in trained])

    def step():
        for part in parts:
            if any(p.grad is not None for p in part.group):
                part.reduce()
            part.free()
        for part in trained:
            part.master.grad = part.gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for part in trained:
            part.mine.copy_(part.master)
            part.gradient.zero_()

    return step
