"""one flat tensor of all its numbers"""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    def whole(mine, numel):
        everything = mine.new_empty(dist.get_world_size() * mine.numel())
        all_gather_single(everything, mine.detach())
        return everything[:numel].clone()

    masters, moments = [], []
    for bucket, mine in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        pieces = whole(mine, numel).split([p.numel() for p in bucket])
        masters.append([piece.view(p.shape) for piece, p in zip(pieces, bucket, strict=True)])
        state = optimizer.state[mine]
        moments.append(
            {name: whole(value, numel) if value.shape == mine.shape else value.clone() for name, value in state.items()}
        )
    return {"masters": masters, "moments": moments}
