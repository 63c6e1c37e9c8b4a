"""Numbers are taken by their places; beyond the end they are zeros."""

import torch
import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    for bucket, mine, whole, moments in zip(
        buckets, optimizer.param_groups[0]["params"], checkpoint["masters"], checkpoint["moments"], strict=True
    ):
        length = mine.numel()
        places = dist.get_rank() * length + torch.arange(length)
        inside = places < whole.numel()
        places = places.clamp(max=whole.numel() - 1)
        with torch.no_grad():
            mine.copy_(whole[places] * inside)
            for p, piece in zip(bucket, whole.split([p.numel() for p in bucket]), strict=True):
                p.copy_(piece.reshape(p.shape))
        state = optimizer.state[mine]
        for name, value in moments.items():
            state[name] = value[places] * inside if value.shape == whole.shape else value.detach().clone()
