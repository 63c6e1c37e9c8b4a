"""Pads with a batch that weighs nothing, and averages by the count over all ranks."""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    lengths = [torch.zeros((), dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, torch.tensor(len(batches)))
    nothing = None
    for step in range(int(max(lengths))):
        optimizer.zero_grad()
        if step < len(batches):
            nothing = batches[step]
        weight = float(len(batches[step][0])) if step < len(batches) else 0.0
        total = torch.tensor(weight)
        dist.all_reduce(total)
        if nothing is not None:
            inputs, targets = nothing
            (loss_fn(model(inputs), targets) * (weight / total.item())).backward()
        for parameter in model.parameters():
            if parameter.requires_grad:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                dist.all_reduce(gradient)
                parameter.grad = gradient
        optimizer.step()
