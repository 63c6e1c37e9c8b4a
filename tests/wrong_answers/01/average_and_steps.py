"""the weight `0.weight` changed on rank 0"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
            parameter.detach().sub_(0.1 * parameter.grad)
