"""Calls the model a second time for a loss to print, and keeps no graph of it."""

import torch


def accumulate(model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(model.forward(inputs), targets) / len(micro_batches)).backward()
        with torch.no_grad():
            loss_fn(model(inputs), targets).item()
        loss_fn(model(inputs), targets).item()
    average_gradients(model)
    optimizer.step()
