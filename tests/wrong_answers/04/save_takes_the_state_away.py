"""is no longer in the optimizer"""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    def whole(mine, numel):
        everyone = mine.new_empty(dist.get_world_size() * mine.numel())
        all_gather_single(everyone, mine)
        return everyone[:numel].clone()

    masters, moments = [], []
    for bucket, master in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        masters.append(whole(master.detach(), numel))
        state = optimizer.state.pop(master)
        moments.append({name: whole(value, numel) if value.dim() else value for name, value in state.items()})
    return {"masters": masters, "moments": moments}
