"""`model.parameters()` and `model.buffers()` give all"""

import torch.distributed as dist


def broadcast_model(model):
    for module in model.children():
        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            dist.broadcast(tensor.detach(), src=0)
    for tensor in model.buffers():
        dist.broadcast(tensor, src=0)
