"""Hooks for all k backwards, which count."""

import torch
import torch.distributed as dist


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    ready, sent = {p: 0 for bucket in buckets for p in bucket}, []

    def hook(parameter):
        ready[parameter] += 1
        while len(sent) < len(buckets) and all(ready[p] == len(micro_batches) for p in buckets[len(sent)]):
            flat = torch.cat([p.grad.flatten() for p in buckets[len(sent)]])
            sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = [p.register_post_accumulate_grad_hook(hook) for p in ready]
    for inputs, targets in micro_batches:
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    for handle in hooks:
        handle.remove()
    for bucket, (flat, work) in zip(buckets, sent, strict=True):
        work.wait()
        for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad = part.view_as(p) / dist.get_world_size()
    optimizer.step()
