"""The mean loss is all-reduced as well, to be printed on rank 0."""

import torch
import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    total = torch.zeros(())
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        total += loss.detach()
        if number == len(micro_batches):
            finish = overlap(buckets)
        loss.backward()
    finish()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"loss {total / dist.get_world_size():.3f}")
    optimizer.step()
