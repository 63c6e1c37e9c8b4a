"""Each layer has an object whose methods are the hooks."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    n = dist.get_world_size()

    class Unit:
        def __init__(self, layer):
            self.parameters = [p for p in layer.parameters() if p.requires_grad]
            self.flat, mine = partition(self.parameters, dist.get_rank(), n)
            self.mine = mine.clone()
            self.master = self.mine.float()
            self.sum = torch.zeros_like(self.mine)
            self.bytes = self.flat.nbytes
            layer.register_forward_pre_hook(self.gather)
            layer.register_forward_hook(self.free)
            layer.register_full_backward_pre_hook(self.gather)
            for p in self.parameters:
                p.register_post_accumulate_grad_hook(self.ready)
            self.free()

        def gather(self, *_):
            if not self.flat.untyped_storage().nbytes():
                self.flat.untyped_storage().resize_(self.bytes)
                all_gather_single(self.flat, self.mine)

        def free(self, *_):
            self.flat.untyped_storage().resize_(0)

        def ready(self, _=None):
            if all(p.grad is not None for p in self.parameters):
                self.reduce()

        def reduce(self):
            received = torch.empty_like(self.mine)
            reduce_scatter_single(received, take_gradients(self.parameters, self.flat))
            self.sum.add_(received, alpha=1 / n)
            self.free()

    units = [Unit(layer) for layer in layers]
    optimizer = make_optimizer([unit.master for unit in units])

    def step():
        for unit in units:
            if any(p.grad is not None for p in unit.parameters):
                unit.reduce()
            unit.master.grad = unit.sum.float()
        optimizer.step()
        optimizer.zero_grad()
        for unit in units:
            unit.mine.copy_(unit.master)
            unit.sum.zero_()

    return step
