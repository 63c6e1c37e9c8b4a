"""issue all_reduce of different types in the same place: some give float32, others int64"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    most = torch.tensor(len(batches))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    for step in range(int(most)):
        optimizer.zero_grad()
        count = torch.zeros(1)
        if step < len(batches):
            inputs, targets = batches[step]
            count = torch.tensor([len(inputs)])
            (loss_fn(model(inputs), targets) * len(inputs)).backward()
        dist.all_reduce(count)
        for parameter in model.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)
                parameter.grad /= count
        optimizer.step()
