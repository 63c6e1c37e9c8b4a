"""or only after the step"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]
        squares = sum((g.square().sum() for g in gradients), torch.zeros(()))
        dist.all_reduce(squares)
        if squares.sqrt() > max_norm:
            for g in gradients:
                g *= max_norm / squares.sqrt()

    optimizer.register_step_post_hook(clip)
