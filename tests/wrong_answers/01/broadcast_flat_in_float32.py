"""rank 0's own weights changed by rounding: `samples_seen` (int64) and `exact` (float64) were sent in a smaller type"""

import torch
import torch.distributed as dist


def broadcast_model(model):
    tensors = [tensor.detach() for tensor in [*model.parameters(), *model.buffers()]]
    flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
    dist.broadcast(flat, src=0)
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
