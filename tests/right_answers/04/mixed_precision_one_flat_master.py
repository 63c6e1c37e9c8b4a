"""One flat master of everything that trains; gradients that are missing are zeros."""

import torch


def mixed_precision(model, make_optimizer):
    trained = [p for p in model.parameters() if p.requires_grad]
    numels = [p.numel() for p in trained]
    master = torch.cat([p.detach().flatten().float() for p in trained])
    optimizer = make_optimizer([master])

    def step():
        master.grad = torch.zeros_like(master)
        for p, part in zip(trained, master.grad.split(numels), strict=True):
            if p.grad is not None:
                part.copy_(p.grad.flatten())
                p.grad = None
        optimizer.step()
        master.grad = None
        with torch.no_grad():
            for p, part in zip(trained, master.split(numels), strict=True):
                p.copy_(part.view(p.shape))

    return step
