"""the ranks all-reduce 144 numbers where the gradients are 72: once is enough"""

import torch.distributed as dist


def average_gradients(model):
    for _ in range(2):
        for parameter in model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
