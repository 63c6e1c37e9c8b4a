"""every bucket is to be sent once"""

import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    finish()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
    optimizer.step()
