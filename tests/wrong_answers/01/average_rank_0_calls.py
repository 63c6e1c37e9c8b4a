"""the ranks wait for each other for ever"""

import torch.distributed as dist


def average_gradients(model):
    if dist.get_rank() == 0:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
