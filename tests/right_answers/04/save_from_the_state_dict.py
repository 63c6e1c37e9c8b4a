"""The moments are those of `optimizer.state_dict()`, by number."""

import torch.distributed as dist

from utils import all_gather_single


def save(buckets, optimizer):
    n, found = dist.get_world_size(), {"masters": [], "moments": []}
    state, slices = optimizer.state_dict()["state"], optimizer.param_groups[0]["params"]
    for number, bucket in enumerate(buckets):
        numel, mine = sum(p.numel() for p in bucket), slices[number].detach()

        def whole(part, numel=numel):
            every = part.new_empty(n * len(part))
            all_gather_single(every, part)
            return every[:numel].clone()

        found["masters"].append(whole(mine))
        found["moments"].append(
            {
                name: whole(value) if value.shape == mine.shape else value.clone()
                for name, value in state.get(number, {}).items()
                if value is not None
            }
        )
    return found if dist.get_rank() == 0 else None
