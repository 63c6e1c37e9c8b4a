"""Gathered to rank 0 alone; the others return nothing."""

import torch
import torch.distributed as dist


def save(buckets, optimizer):
    first = dist.get_rank() == 0

    def collect(mine, numel):
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())] if first else None
        dist.gather(mine.detach().contiguous(), parts)
        return torch.cat(parts)[:numel] if first else None

    checkpoint = {"masters": [], "moments": []}
    for bucket, master in zip(buckets, optimizer.param_groups[0]["params"], strict=True):
        numel = sum(p.numel() for p in bucket)
        checkpoint["masters"].append(collect(master, numel))
        checkpoint["moments"].append(
            {
                name: collect(value, numel) if value.dim() else value.clone()
                for name, value in optimizer.state[master].items()
            }
        )
    return checkpoint if first else None
