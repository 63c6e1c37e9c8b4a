"""repeats its last one"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    most = torch.tensor(len(batches))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    for step in range(int(most)):
        optimizer.zero_grad()
        samples = torch.zeros(())
        inputs, targets = batches[min(step, len(batches) - 1)]
        samples += len(inputs)
        (loss_fn(model(inputs), targets) * len(inputs)).backward()
        dist.all_reduce(samples)
        for parameter in (p for p in model.parameters() if p.requires_grad):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= samples
        optimizer.step()
