"""The optimizer's step is wrapped, and torch's own formula used."""

import torch
import torch.distributed as dist


def clip_gradients(optimizer, max_norm):
    inner = optimizer.step

    def step(*arguments, **named):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
        square = torch.stack(norms).square().sum() if norms else torch.zeros(())
        dist.all_reduce(square)
        if gradients:
            torch._foreach_mul_(gradients, min(1.0, max_norm / (square.sqrt().item() + 1e-6)))
        return inner(*arguments, **named)

    optimizer.step = step
