"""A class for each layer, which wraps its forward and hooks onto its output."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


class Unit:
    def __init__(self, layer):
        self.parameters = [p for p in layer.parameters() if p.requires_grad]
        self.flat, mine = partition(self.parameters, dist.get_rank(), dist.get_world_size())
        self.mine, self.bytes = mine.clone(), self.flat.untyped_storage().nbytes()
        self.master, self.gradient = self.mine.float(), None
        self.free()
        self.inner, layer.forward = layer.forward, self.forward
        for p in self.parameters:
            p.register_post_accumulate_grad_hook(self.ready)

    def free(self):
        self.flat.untyped_storage().resize_(0)

    def gather(self, *_):
        if not self.flat.untyped_storage().nbytes():
            self.flat.untyped_storage().resize_(self.bytes)
            all_gather_single(self.flat, self.mine)

    def forward(self, *inputs):
        self.gather()
        outputs = self.inner(*inputs)
        self.free()
        if outputs.requires_grad:
            outputs.register_hook(self.gather)
        return outputs

    def ready(self, _=None):
        if all(p.grad is not None for p in self.parameters):
            self.reduce()

    def reduce(self):
        received = torch.empty_like(self.mine)
        reduce_scatter_single(received, take_gradients(self.parameters, self.flat))
        received /= dist.get_world_size()
        self.gradient = received if self.gradient is None else self.gradient.add_(received)
        self.free()


def zero3(layers, make_optimizer):
    units = [Unit(layer) for layer in layers]
    optimizer = make_optimizer([unit.master for unit in units])

    def step():
        for unit in units:
            if any(p.grad is not None for p in unit.parameters):
                unit.reduce()
            unit.free()
            if unit.gradient is not None:
                unit.master.grad, unit.gradient = unit.gradient.float(), None
        optimizer.step()
        for unit in units:
            unit.master.grad = None
            unit.mine.copy_(unit.master)

    return step
