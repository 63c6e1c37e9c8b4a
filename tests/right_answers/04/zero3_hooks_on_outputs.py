"""A class for each layer; its backward is announced by a hook on its output."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    class Unit:
        def __init__(self, layer):
            self.parameters = [p for p in layer.parameters() if p.requires_grad]
            self.flat, mine = partition(self.parameters, dist.get_rank(), dist.get_world_size())
            self.mine = mine.clone()
            self.master = self.mine.float()
            self.sum = None
            self.size = self.flat.untyped_storage().nbytes()
            self.free()
            layer.register_forward_pre_hook(lambda module, inputs: self.gather())
            layer.register_forward_hook(self.after_forward)
            for p in self.parameters:
                p.register_post_accumulate_grad_hook(lambda p: self.reduce(all))

        def gather(self):
            storage = self.flat.untyped_storage()
            if storage.nbytes() < self.size:
                storage.resize_(self.size)
                all_gather_single(self.flat, self.mine)

        def free(self):
            self.flat.untyped_storage().resize_(0)

        def after_forward(self, module, inputs, output):
            if output.requires_grad:
                output.register_hook(lambda gradient: self.gather())
            self.free()

        def reduce(self, enough):
            if enough(p.grad is not None for p in self.parameters):
                gradient = torch.zeros_like(self.mine)
                reduce_scatter_single(gradient, take_gradients(self.parameters, self.flat), op=dist.ReduceOp.AVG)
                self.sum = gradient if self.sum is None else self.sum + gradient
                self.free()

        def finish(self):
            self.reduce(any)
            self.free()
            self.master.grad = None if self.sum is None else self.sum.float()
            self.sum = None

    units = [Unit(layer) for layer in layers]
    optimizer = make_optimizer([unit.master for unit in units])

    def step():
        for unit in units:
            unit.finish()
        optimizer.step()
        optimizer.zero_grad()
        for unit in units:
            unit.mine.copy_(unit.master)

    return step
