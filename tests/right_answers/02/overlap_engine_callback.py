"""The autograd engine calls back when backward is over; `finish` has nothing left to do."""

import torch
import torch.distributed as dist


def overlap(buckets):
    sent = []

    def back():
        for hook in hooks:
            hook.remove()
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    def send(number):
        if number == 0:
            torch.autograd.Variable._execution_engine.queue_callback(back)
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full(buckets, send)
    return lambda: None
