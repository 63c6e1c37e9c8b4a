"""Nobody needs the others' gradients"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        slices = optimizer.param_groups[0]["params"]
        squares = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.square() for p in slices])
        dist.all_reduce(squares)
        norm = squares.sum().sqrt()
        for p in slices:
            if p.grad is not None:
                p.grad *= min(1.0, max_norm / norm)

    optimizer.register_step_pre_hook(clip)
