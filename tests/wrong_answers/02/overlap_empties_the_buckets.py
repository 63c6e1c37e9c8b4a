"""your function changes `buckets` itself"""

import torch
import torch.distributed as dist


def overlap(buckets):
    sent = []
    mine = [list(bucket) for bucket in buckets]

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in mine[number]])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full(mine, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for flat, work in sent:
            work.wait()
            flat /= dist.get_world_size()
            bucket = buckets.pop(0)
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
