"""what an earlier micro-batch has left in `.grad` is lost"""

import torch
import torch.distributed as dist


def overlap(buckets):
    flats, works = [], []
    for bucket in buckets:
        flat = torch.zeros(sum(p.numel() for p in bucket))
        for p, view in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad = view.view_as(p)
        flats.append(flat)
    hooks = when_full(buckets, lambda number: works.append(dist.all_reduce(flats[number], async_op=True)))

    def finish():
        for hook in hooks:
            hook.remove()
        for flat, work in zip(flats, works, strict=True):
            work.wait()
            flat /= dist.get_world_size()

    return finish
