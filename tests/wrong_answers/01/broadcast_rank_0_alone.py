"""rank 0 waits in broadcast"""

import torch.distributed as dist


def broadcast_model(model):
    if dist.get_rank() == 0:
        for tensor in [*model.parameters(), *model.buffers()]:
            dist.broadcast(tensor.detach(), src=0)
