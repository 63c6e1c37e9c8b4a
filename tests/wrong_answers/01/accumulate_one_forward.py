"""3 micro-batches go through one forward: that needs the memory of the whole batch"""

import torch


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    inputs, targets = (torch.cat(parts) for parts in zip(*micro_batches, strict=True))
    loss_fn(model(inputs), targets).backward()
    average_gradients(model)
    optimizer.step()
