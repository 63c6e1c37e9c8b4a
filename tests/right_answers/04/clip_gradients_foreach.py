"""Norms of all slices at once, and a factor of at most 1."""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    @torch.no_grad()
    def clip(optimizer, *_):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms = torch.stack(torch._foreach_norm(gradients)) if gradients else torch.zeros(1)
        total = torch.linalg.vector_norm(norms) ** 2
        dist.all_reduce(total)
        factor = (max_norm / total.sqrt()).clamp(max=1.0)
        if gradients and factor < 1:
            torch._foreach_mul_(gradients, factor)

    optimizer.register_step_pre_hook(clip)
