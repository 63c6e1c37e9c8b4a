"""the buffer `running_mean` changed on rank 1: only gradients are to be averaged"""

import torch.distributed as dist


def average_gradients(model):
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
