"""every gradient is zero"""

import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad.zero_()
