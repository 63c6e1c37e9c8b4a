"""the frozen parameters are forgotten"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*(p for p in model.parameters() if p.requires_grad), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=0)
