"""rank 0's own weights changed by rounding"""

import torch.distributed as dist


def broadcast_model(model):
    for tensor in [*model.parameters(), *model.buffers()]:
        half = tensor.detach().half()
        dist.broadcast(half, src=0)
        tensor.detach().copy_(half)
