"""the root is missing"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]
        norm = sum((g.square().sum() for g in gradients), torch.zeros(()))
        dist.all_reduce(norm)
        if norm > max_norm:
            for g in gradients:
                g *= max_norm / norm

    optimizer.register_step_pre_hook(clip)
