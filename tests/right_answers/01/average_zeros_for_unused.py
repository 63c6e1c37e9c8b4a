"""Gives unused parameters a gradient of zeros."""

import torch
import torch.distributed as dist


def average_gradients(model):
    for parameter in (p for p in model.parameters() if p.requires_grad):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
