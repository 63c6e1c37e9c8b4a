"""the buffer `running_mean` changed on rank 0: only gradients are to be averaged"""

import torch.distributed as dist


def average_gradients(model):
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    for tensor in [*gradients, *model.buffers()]:
        dist.all_reduce(tensor)
        tensor /= dist.get_world_size()
