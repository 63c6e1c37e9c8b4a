"""has no gradient in a single process; on rank 0 it got one"""

import torch
import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.ones_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
