"""One flat broadcast for each type of number."""

import torch
import torch.distributed as dist


def broadcast_model(model):
    tensors = [tensor.detach() for tensor in [*model.parameters(), *model.buffers()]]
    for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
        same = [tensor for tensor in tensors if tensor.dtype == dtype]
        flat = torch.cat([tensor.reshape(-1) for tensor in same])
        dist.broadcast(flat, src=0)
        for tensor, part in zip(same, flat.split([tensor.numel() for tensor in same]), strict=True):
            tensor.copy_(part.view_as(tensor))
