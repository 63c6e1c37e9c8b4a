"""is 8; on every rank the optimizer's state has 2"""

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
        entry = {}
        for name, value in optimizer.state[master].items():
            if value.dim():
                entry[name] = whole(value, numel)
            else:
                entry[name] = value.clone()
                dist.all_reduce(entry[name])
        moments.append(entry)
    return {"masters": masters, "moments": moments}
