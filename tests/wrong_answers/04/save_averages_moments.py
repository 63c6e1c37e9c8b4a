"""those of rank 0's slice alone"""

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    masters, moments = [], []
    for bucket, master in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        parts = [torch.empty_like(master) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, master.detach())
        masters.append(torch.cat(parts)[:numel])
        state = {}
        for name, value in optimizer.state[master].items():
            state[name] = value.clone()
            dist.all_reduce(state[name], op=dist.ReduceOp.AVG)
        moments.append(state)
    return {"masters": masters, "moments": moments}
