"""nothing overlaps: no all-reduce is issued before the last gradient is ready"""

import torch
import torch.distributed as dist


def overlap(buckets):
    everything = [p for bucket in buckets for p in bucket]
    sent = []

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in everything])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full([everything], send)

    def finish():
        for hook in hooks:
            hook.remove()
        ((flat, work),) = sent
        work.wait()
        flat /= dist.get_world_size()
        for p, part in zip(everything, flat.split([p.numel() for p in everything]), strict=True):
            p.grad.copy_(part.view_as(p))

    return finish
