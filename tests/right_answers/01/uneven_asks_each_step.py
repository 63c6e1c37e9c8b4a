"""Counts the samples of every step, and stops when the count is zero."""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    step = 0
    while True:
        here = len(batches[step][0]) if step < len(batches) else 0
        total = torch.tensor(float(here))
        dist.all_reduce(total)
        if total == 0:
            return
        optimizer.zero_grad()
        if here:
            loss_fn(model(batches[step][0]), batches[step][1]).backward()
        for parameter in (p for p in model.parameters() if p.requires_grad):
            mine = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad * here
            dist.all_reduce(mine)
            parameter.grad = mine / total
        optimizer.step()
        step += 1
