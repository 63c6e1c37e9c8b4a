"""Nobody needs the others' gradients"""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    def clip(optimizer, *_):
        slices = optimizer.param_groups[0]["params"]
        mine = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad for p in slices])
        everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine)
        norm = torch.cat(everyone).norm()
        for p in slices:
            if p.grad is not None:
                p.grad *= min(1.0, max_norm / norm)

    optimizer.register_step_pre_hook(clip)
