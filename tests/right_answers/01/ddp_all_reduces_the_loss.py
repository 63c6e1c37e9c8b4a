"""Averages the loss as well, and leaves the gradients to DDP."""

import contextlib

import torch.distributed as dist


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    total = 0.0
    with ddp_model.no_sync():
        for inputs, targets in micro_batches[:-1]:
            loss = loss_fn(ddp_model(inputs), targets) / len(micro_batches)
            loss.backward()
            total += loss.detach()
    inputs, targets = micro_batches[-1]
    with contextlib.nullcontext():
        loss = loss_fn(ddp_model(inputs), targets) / len(micro_batches)
        loss.backward()
    total += loss.detach()
    dist.all_reduce(total)
    optimizer.step()
