"""with the padding for"""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    def whole(mine, numel):
        everyone = mine.new_empty(dist.get_world_size() * mine.numel())
        all_gather_single(everyone, mine)
        return everyone[:numel].clone()

    masters, moments = [], []
    for master in optimizer.param_groups[0]["params"]:
        numel = dist.get_world_size() * master.numel()
        masters.append(whole(master.detach(), numel))
        state = optimizer.state[master].items()
        moments.append({name: whole(value, numel) if value.dim() else value.clone() for name, value in state})
    return {"masters": masters, "moments": moments}
