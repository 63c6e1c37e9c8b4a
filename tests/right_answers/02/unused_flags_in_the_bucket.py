"""Each bucket carries a flag for each parameter: who has a gradient."""

import torch
import torch.distributed as dist


def overlap_unused(buckets):
    sent = []

    def send(number):
        bucket = buckets[number]
        parts = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in bucket]
        flags = torch.tensor([float(p.grad is not None) for p in bucket])
        flat = torch.cat([*parts, flags])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for number in range(len(sent), len(buckets)):
            send(number)
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            *parts, flags = flat.split([*(p.numel() for p in bucket), len(bucket)])
            for p, part, users in zip(bucket, parts, flags.tolist(), strict=True):
                p.grad = part.view_as(p) / dist.get_world_size() if users else None

    return finish
