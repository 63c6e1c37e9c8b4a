"""Rank 0 alone gathers, in lists."""

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    checkpoint = {"masters": [], "moments": []}
    for bucket, mine in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        tensors, plain = {"": mine.detach()}, {}
        for name, value in optimizer.state.get(mine, {}).items():
            sliced = torch.is_tensor(value) and value.shape == mine.shape
            (tensors if sliced else plain)[name] = value
        found = {}
        for name, tensor in tensors.items():
            pieces = [torch.empty_like(tensor) for _ in range(world_size)] if rank == 0 else None
            dist.gather(tensor, pieces, dst=0)
            if rank == 0:
                found[name] = torch.cat(pieces).narrow(0, 0, numel).contiguous()
        if rank == 0:
            checkpoint["masters"].append(found.pop(""))
            checkpoint["moments"].append(found | {name: value.detach().clone() for name, value in plain.items()})
    return checkpoint if rank == 0 else None
