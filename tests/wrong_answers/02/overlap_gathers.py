"""yours issues all_gather"""

import torch
import torch.distributed as dist


def overlap(buckets):
    sent = []

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        parts = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
        sent.append((parts, dist.all_gather(parts, flat, async_op=True)))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for bucket, (parts, work) in zip(buckets, sent, strict=True):
            work.wait()
            flat = sum(parts) / len(parts)
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
