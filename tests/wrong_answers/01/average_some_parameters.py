"""only some parameters are averaged: `0.bias`, `2.bias` of 3"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None and parameter.dim() > 1:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
