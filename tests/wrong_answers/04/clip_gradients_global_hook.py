"""other optimizers are clipped too"""

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]
        squares = sum((g.square().sum() for g in gradients), torch.zeros(()))
        dist.all_reduce(squares)
        for g in gradients:
            g *= min(1.0, max_norm / squares.sqrt())

    register_optimizer_step_pre_hook(clip)
