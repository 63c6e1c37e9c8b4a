"""`spare.weight` and `spare.bias` have no gradient on the ranks that have a batch"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    most = torch.tensor(len(batches))
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    for step in range(int(most)):
        optimizer.zero_grad()
        samples = torch.zeros(())
        if step < len(batches):
            inputs, targets = batches[step]
            samples += len(inputs)
            (loss_fn(model(inputs), targets) * len(inputs)).backward()
        else:
            sum((p * 0).sum() for p in model.parameters()).backward()
        dist.all_reduce(samples)
        for parameter in (p for p in model.parameters() if p.requires_grad):
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= samples
        optimizer.step()
