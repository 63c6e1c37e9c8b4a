"""What autograd saves of a unit is a place; when backward asks for it, the unit is gathered into a new buffer."""

import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks

from utils import all_gather_single, reduce_scatter_single


class Unit:
    def __init__(self, module, number):
        self.group = list(module.parameters())
        self.shapes = [p.shape for p in self.group]
        self.flat, self.mine = shard(self.group, dist.get_rank(), dist.get_world_size())
        self.trains, self.whole, self.hooks = self.group[0].requires_grad, None, None
        self.master, self.gradient = self.mine.float(), torch.zeros_like(self.mine)
        self.free()
        module.register_forward_pre_hook(self.before_forward)
        module.register_forward_hook(self.after_forward, always_call=True)
        for p in self.group if self.trains else ():
            p.register_post_accumulate_grad_hook(self.ready)
        if not self.trains:
            module.register_full_backward_hook(self.free)

    def show(self, numbers):
        begin = 0
        for p, shape in zip(self.group, self.shapes, strict=True):
            p.data = numbers[begin : begin + shape.numel()].view(shape)
            begin += shape.numel()

    def gather(self):
        if self.whole is None:
            self.whole = self.mine.new_empty(self.flat.shape)
            all_gather_single(self.whole, self.mine)
            self.show(self.whole)
        return self.whole

    def free(self, *_):
        self.whole = None
        for p, shape in zip(self.group, self.shapes, strict=True):
            p.data = p.new_empty(()).expand(shape)  # the shape is asked for when gradients come

    def pack(self, tensor):
        same = self.whole is not None and tensor.untyped_storage()._cdata == self.whole.untyped_storage()._cdata
        return (tensor.size(), tensor.stride(), tensor.storage_offset()) if same else tensor

    def unpack(self, packed):
        return packed if isinstance(packed, torch.Tensor) else self.gather().as_strided(*packed)

    def before_forward(self, *_):
        self.gather()
        self.hooks = saved_tensors_hooks(self.pack, self.unpack)
        self.hooks.__enter__()

    def after_forward(self, *_):
        self.hooks.__exit__(None, None, None)
        self.free()

    def ready(self, _):
        if all(p.grad is not None for p in self.group):
            self.reduce()

    def reduce(self):
        received = torch.empty_like(self.mine)
        reduce_scatter_single(received, take_gradients(self.group, self.flat), op=dist.ReduceOp.AVG)
        self.gradient += received
        self.free()


def fsdp(units, make_optimizer):
    everything = [Unit(module, number) for number, module in enumerate(units)]
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
