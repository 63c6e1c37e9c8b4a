"""Slices by `torch.nn.functional.pad` and a view in rows; the state is updated name by name."""

import torch
import torch.distributed as dist
from torch.nn.functional import pad


@torch.no_grad()
def load(checkpoint, buckets, optimizer):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = optimizer.param_groups[0]["params"]
    for bucket, own, whole, moments in zip(buckets, mine, checkpoint["masters"], checkpoint["moments"], strict=True):

        def cut(numbers, own=own):
            return pad(numbers, (0, n * len(own) - len(numbers))).view(n, len(own))[rank].clone()

        own.copy_(cut(whole))
        for name, value in moments.items():
            optimizer.state[own][name] = cut(value) if value.dim() else value.clone()
        numbers = iter(whole.split([p.numel() for p in bucket]))
        for p in bucket:
            p.copy_(next(numbers).reshape(p.shape))
