"""each rank broadcasts from a rank of its own"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=dist.get_rank())
