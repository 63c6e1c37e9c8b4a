"""only rank 0 of 4 has the average"""

import torch
import torch.distributed as dist


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parts = [torch.empty_like(parameter.grad) for _ in range(dist.get_world_size())]
            dist.gather(parameter.grad, parts if dist.get_rank() == 0 else None, dst=0)
            if dist.get_rank() == 0:
                parameter.grad.copy_(sum(parts) / len(parts))
