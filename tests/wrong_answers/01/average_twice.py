"""the gradients are averaged twice"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad /= dist.get_world_size()
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
