"""nothing clips, or only after the step"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    gradients = [p.grad for p in optimizer.param_groups[0]["params"] if p.grad is not None]
    squares = torch.stack([g.square().sum() for g in gradients]).sum()
    dist.all_reduce(squares)
    factor = min(1.0, max_norm / squares.sqrt().item())
    for g in gradients:
        g *= factor
