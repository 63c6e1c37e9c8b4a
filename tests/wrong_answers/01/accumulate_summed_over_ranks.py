"""the gradients are summed over the ranks, not averaged: every one is 4.0"""

import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
    optimizer.step()
