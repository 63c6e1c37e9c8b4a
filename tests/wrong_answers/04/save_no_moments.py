"""is not saved: without it training does not go on as before"""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    def whole(mine, numel):
        everyone = mine.new_empty(dist.get_world_size() * mine.numel())
        all_gather_single(everyone, mine)
        return everyone[:numel].clone()

    masters = []
    for bucket, master in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        masters.append(whole(master.detach(), sum(p.numel() for p in bucket)))
    return {"masters": masters, "moments": [{} for _ in masters]}
