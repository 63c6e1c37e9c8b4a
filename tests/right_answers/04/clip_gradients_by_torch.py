"""The local norm from torch, its square summed over gathered ones, and torch's own scaling."""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, args, kwargs):
        slices = [p for p in optimizer.param_groups[0]["params"] if p.grad is not None]
        local = torch.nn.utils.get_total_norm([p.grad for p in slices]).reshape(1)
        norms = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(norms, local)
        torch.nn.utils.clip_grads_with_norm_(slices, max_norm, torch.cat(norms).norm())

    optimizer.register_step_pre_hook(clip)
