"""the ranks' means are averaged as if all had equally many samples"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    most = torch.tensor(len(batches))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    for step in range(int(most)):
        optimizer.zero_grad()
        if step < len(batches):
            inputs, targets = batches[step]
            loss_fn(model(inputs), targets).backward()
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        average_gradients(model)
        optimizer.step()
