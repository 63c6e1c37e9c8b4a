"""nothing happened: every rank still has its own weights"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach().clone(), src=0)
