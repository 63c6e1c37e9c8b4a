"""A class with a method for each moment; backward by hooks on the outputs."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


class Unit:
    def __init__(self, module):
        self.group = list(module.parameters())
        self.flat, self.mine = shard(self.group, dist.get_rank(), dist.get_world_size())
        self.trains = self.group[0].requires_grad
        self.master = self.mine.float()
        self.gradient = torch.zeros_like(self.mine)
        module.register_forward_pre_hook(self.gather)
        module.register_forward_hook(self.forward_is_over)
        for p in self.group if self.trains else ():
            p.register_post_accumulate_grad_hook(self.ready)
        if not self.trains:
            module.register_full_backward_hook(self.free)

    def gather(self, *_):
        if not self.flat.untyped_storage().nbytes():
            self.flat.untyped_storage().resize_(self.flat.nbytes)
            all_gather_single(self.flat, self.mine)

    def free(self, *_):
        self.flat.untyped_storage().resize_(0)

    def forward_is_over(self, module, inputs, output):
        self.free()
        if output.requires_grad:
            output.register_hook(self.gather)

    def ready(self, _):
        if all(p.grad is not None for p in self.group):
            self.reduce()

    def reduce(self):
        received = torch.empty_like(self.mine)
        reduce_scatter_single(received, take_gradients(self.group, self.flat), op=dist.ReduceOp.AVG)
        self.gradient += received
        self.free()


def fsdp(units, make_optimizer):
    everything = [Unit(module) for module in units]
    trained = [unit for unit in everything if unit.trains]
    optimizer = make_optimizer([unit.master for unit in trained])

    def step():
        for unit in everything:
            if any(p.grad is not None for p in unit.group):
                unit.reduce()
            unit.free()
        for unit in trained:
            unit.master.grad = unit.gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for unit in trained:
            unit.mine.copy_(unit.master)
            unit.gradient.zero_()

    return step
