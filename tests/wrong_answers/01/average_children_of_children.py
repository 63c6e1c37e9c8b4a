"""`model.parameters()` gives all, those of the model itself and of nested modules too"""

import torch.distributed as dist


def average_gradients(model):
    for module in model.children():
        for parameter in module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
