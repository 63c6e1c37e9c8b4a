"""by the sum of absolute values"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.tensor([sum((g.abs().sum().item() for g in gradients), 0.0)])
        dist.all_reduce(norm)
        if norm > max_norm:
            for gradient in gradients:
                gradient.mul_(max_norm / norm)

    optimizer.register_step_pre_hook(clip)
