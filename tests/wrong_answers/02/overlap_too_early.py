"""a bucket is sent before it is full"""

from functools import partial

import torch
import torch.distributed as dist


def overlap(buckets):
    sent = []

    def send(number, parameter):
        for p in buckets[number]:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = [
        bucket[0].register_post_accumulate_grad_hook(partial(send, number)) for number, bucket in enumerate(buckets)
    ]

    def finish():
        for hook in hooks:
            hook.remove()
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
