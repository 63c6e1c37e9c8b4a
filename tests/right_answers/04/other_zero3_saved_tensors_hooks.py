"""No storage is resized: parameters are renamed, and autograd saves where a weight lies instead of the weight."""

import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    ranks = dist.get_world_size()

    class Unit:
        def __init__(self, layer):
            self.parameters = [p for p in layer.parameters() if p.requires_grad]
            self.shapes = [p.shape for p in self.parameters]
            self.mine = partition(self.parameters, dist.get_rank(), ranks)[1].clone()
            self.flat, self.sum = None, None
            self.master = self.mine.float()
            self.free()
            layer.register_forward_pre_hook(self.before_forward)
            layer.register_forward_hook(self.after_forward)
            layer.register_full_backward_pre_hook(lambda *_: self.gather())
            for p in self.parameters:
                p.register_post_accumulate_grad_hook(lambda p: self.reduce(all))

        def gather(self):
            if self.flat is None:
                self.flat = self.mine.new_empty(ranks * self.mine.numel())
                all_gather_single(self.flat, self.mine)
                begin = 0
                for p, shape in zip(self.parameters, self.shapes, strict=True):
                    p.data = self.flat[begin : begin + shape.numel()].view(shape)
                    begin += shape.numel()

        def free(self):
            self.flat = None
            for p, shape in zip(self.parameters, self.shapes, strict=True):
                p.data = self.mine.new_empty(()).expand(shape)

        def pack(self, tensor):
            if self.flat is not None and tensor.untyped_storage().data_ptr() == self.flat.untyped_storage().data_ptr():
                return tensor.size(), tensor.stride(), tensor.storage_offset()
            return tensor

        def unpack(self, packed):
            if isinstance(packed, torch.Tensor):
                return packed
            self.gather()
            return self.flat.as_strided(*packed)

        def before_forward(self, *_):
            self.gather()
            self.hooks = saved_tensors_hooks(self.pack, self.unpack)
            self.hooks.__enter__()

        def after_forward(self, *_):
            self.hooks.__exit__(None, None, None)
            self.free()

        def reduce(self, enough):
            if enough(p.grad is not None for p in self.parameters):
                layout = self.mine.new_empty(ranks * self.mine.numel())
                gradient = torch.zeros_like(self.mine)
                reduce_scatter_single(gradient, take_gradients(self.parameters, layout), op=dist.ReduceOp.AVG)
                self.sum = gradient if self.sum is None else self.sum + gradient
                self.free()

    units = [Unit(layer) for layer in layers]
    optimizer = make_optimizer([unit.master for unit in units])

    def step():
        for unit in units:
            unit.reduce(any)
            unit.free()
            unit.master.grad = None if unit.sum is None else unit.sum.float()
            unit.sum = None
        optimizer.step()
        optimizer.zero_grad()
        for unit in units:
            unit.mine.copy_(unit.master)

    return step
