"""requires_grad changed on rank 0"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=0)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
