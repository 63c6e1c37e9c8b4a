"""the ranks stop after 2 of 3 steps, and 3 samples are never seen"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    fewest = torch.tensor(len(batches))
    dist.all_reduce(fewest, op=dist.ReduceOp.MIN)
    for step in range(int(fewest)):
        optimizer.zero_grad()
        samples = torch.zeros(())
        if step < len(batches):
            inputs, targets = batches[step]
            samples += len(inputs)
            (loss_fn(model(inputs), targets) * len(inputs)).backward()
        dist.all_reduce(samples)
        for parameter in (p for p in model.parameters() if p.requires_grad):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= samples
        optimizer.step()
