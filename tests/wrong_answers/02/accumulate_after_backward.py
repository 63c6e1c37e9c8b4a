"""nothing overlaps"""

import torch
import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    for bucket in buckets:
        flat = torch.cat([p.grad.flatten() for p in bucket])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad.copy_(part.view_as(p))
    optimizer.step()
