"""Sums, and scales once at the end, in one flat bucket."""

import torch
import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        loss_fn(model(inputs), targets).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(bucket)
    bucket /= dist.get_world_size() * len(micro_batches)
    for gradient, part in zip(gradients, bucket.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))
    optimizer.step()
