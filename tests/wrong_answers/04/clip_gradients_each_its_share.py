"""to a share of max_norm"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        squares = torch.tensor([sum(g.square().sum().item() for g in gradients)])
        norm, share = squares.sqrt().item(), max_norm / dist.get_world_size() ** 0.5
        if norm > share:
            for gradient in gradients:
                gradient.mul_(share / norm)

    optimizer.register_step_pre_hook(clip)
