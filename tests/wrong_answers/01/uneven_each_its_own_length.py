"""one that has no batch left must go on taking part"""

import torch
import torch.distributed as dist


def uneven_batches(model, optimizer, loss_fn, batches):
    for inputs, targets in batches:
        optimizer.zero_grad()
        samples = torch.tensor(float(len(inputs)))
        (loss_fn(model(inputs), targets) * len(inputs)).backward()
        dist.all_reduce(samples)
        for parameter in (p for p in model.parameters() if p.grad is not None):
            dist.all_reduce(parameter.grad)
            parameter.grad /= samples
        optimizer.step()
