"""Lists of tensors at once, by torch's `_foreach` functions; unused parameters get zeros."""

import torch


def mixed_precision(model, make_optimizer):
    trained = tuple(filter(lambda p: p.requires_grad, model.parameters()))
    masters = [torch.empty_like(p, dtype=torch.float32) for p in trained]
    torch._foreach_copy_(masters, [p.data for p in trained])
    optimizer = make_optimizer(masters)

    def step():
        for master, p in zip(masters, trained, strict=True):
            master.grad = torch.zeros_like(master) if p.grad is None else p.grad.float()
        model.zero_grad(set_to_none=True)
        optimizer.step()
        optimizer.zero_grad()
        torch._foreach_copy_([p.data for p in trained], masters)

    return step
