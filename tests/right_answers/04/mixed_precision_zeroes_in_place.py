"""Masters are parameters of their own; the model's gradients become zeros, not None."""

import torch
from torch import nn


def mixed_precision(model, make_optimizer):
    pairs = [(p, nn.Parameter(p.detach().to(torch.float32))) for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer([master for _, master in pairs])

    @torch.no_grad()
    def step():
        for p, master in pairs:
            if p.grad is not None:
                master.grad = p.grad.to(torch.float32)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for p, master in pairs:
            p.copy_(master)
            if p.grad is not None:
                p.grad.zero_()

    return step
