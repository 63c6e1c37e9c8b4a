"""every rank has the weights of rank 2, not of rank 0"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=dist.get_world_size() - 1)
