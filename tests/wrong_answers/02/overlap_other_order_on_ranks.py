"""the ranks issue collectives of different sizes in the same place"""

from functools import partial

import torch
import torch.distributed as dist


def overlap(buckets):
    missing = [len(bucket) for bucket in buckets]
    sent = {}

    def hook(number, parameter):
        missing[number] -= 1
        if missing[number] == 0:
            flat = torch.cat([p.grad.flatten() for p in buckets[number]])
            sent[number] = flat, dist.all_reduce(flat, async_op=True)

    hooks = [
        p.register_post_accumulate_grad_hook(partial(hook, number))
        for number, bucket in enumerate(buckets)
        for p in bucket
    ]

    def finish():
        for handle in hooks:
            handle.remove()
        for number, bucket in enumerate(buckets):
            flat, work = sent[number]
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
