"""One flat bucket, as DDP makes it."""

import torch
import torch.distributed as dist


def average_gradients(model):
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(bucket)
    bucket /= dist.get_world_size()
    for gradient, part in zip(gradients, bucket.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))
