"""times one constant: 2.0 times too large"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
