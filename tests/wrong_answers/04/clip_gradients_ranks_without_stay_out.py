"""a hang, on 4 ranks"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]
        if not gradients:
            return
        squares = torch.stack([g.square().sum() for g in gradients]).sum()
        dist.all_reduce(squares)
        for g in gradients:
            g *= min(1.0, max_norm / squares.sqrt())

    optimizer.register_step_pre_hook(clip)
