"""What is returned are views of buffers that were gathered for it."""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    def whole(mine, numel):
        everything = mine.new_empty(dist.get_world_size() * mine.numel())
        all_gather_single(everything, mine.detach())
        return everything[:numel]

    masters, moments = [], []
    for bucket, mine in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        masters.append(whole(mine, numel))
        state = optimizer.state[mine]
        moments.append(
            {name: whole(value, numel) if value.shape == mine.shape else value.clone() for name, value in state.items()}
        )
    return {"masters": masters, "moments": moments}
