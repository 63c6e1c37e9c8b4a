"""All-gather and a local mean: right, and dearer."""

import torch
import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.grad is not None:
            parts = [torch.empty_like(parameter.grad) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, parameter.grad)
            parameter.grad.copy_(torch.stack(parts).mean(0))
