"""nothing is averaged: every rank still has the gradients of its own shard"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.detach())
        parameter.detach().div_(dist.get_world_size())
