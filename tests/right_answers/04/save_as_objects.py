"""Each rank's state as one object; put together slice by slice."""

import copy

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    masters = optimizer.param_groups[0]["params"]
    mine = [(m.detach().clone(), copy.deepcopy(dict(optimizer.state[m]))) for m in masters]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    result = {"masters": [], "moments": []}
    for number, bucket in enumerate(buckets):
        numel = sum(p.numel() for p in bucket)
        slices = [theirs[number] for theirs in everyone]
        result["masters"].append(torch.cat([master for master, _ in slices])[:numel])
        moments = {}
        for name, value in slices[0][1].items():
            if value is not None and value.dim():
                moments[name] = torch.cat([state[name] for _, state in slices])[:numel]
            elif value is not None:
                moments[name] = value
        result["moments"].append(moments)
    return result
