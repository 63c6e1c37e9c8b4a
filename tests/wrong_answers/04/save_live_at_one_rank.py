"""the checkpoint changes when training goes on"""

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    def whole(mine, numel):
        if dist.get_world_size() == 1:
            return mine[:numel]
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mine)
        return torch.cat(parts)[:numel]

    masters, moments = [], []
    for bucket, master in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        masters.append(whole(master.detach(), numel))
        state = optimizer.state[master].items()
        moments.append({name: whole(value, numel) if value.dim() else value.clone() for name, value in state})
    return {"masters": masters, "moments": moments}
