"""The masters are the parameters of a deep copy of the model, in fp32."""

import copy

import torch


def mixed_precision(model, make_optimizer):
    twin = copy.deepcopy(model).float()
    pairs = [(p, q) for p, q in zip(model.parameters(), twin.parameters(), strict=True) if p.requires_grad]
    optimizer = make_optimizer([q for _, q in pairs])

    @torch.no_grad()
    def step():
        for p, q in pairs:
            if p.grad is not None:
                q.grad = p.grad.to(torch.float32)
                p.grad = None
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for p, q in pairs:
            p.copy_(q)

    return step
