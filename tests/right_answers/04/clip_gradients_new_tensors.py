"""The clipped gradients are new tensors."""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):

    def clip(*_):
        tensors = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        square = sum((p.grad.square().sum() for p in tensors), torch.zeros(()))
        dist.all_reduce(square)
        factor = (max_norm / square.sqrt()).clamp(max=1)
        for p in tensors:
            p.grad = p.grad * factor

    optimizer.register_step_pre_hook(clip)
