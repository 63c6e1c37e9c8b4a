"""a gradient that an earlier micro-batch has left is overwritten with zeros"""

import torch
import torch.distributed as dist


def overlap_unused(buckets):
    sent = []

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    ready = set()
    noted = [p.register_post_accumulate_grad_hook(ready.add) for bucket in buckets for p in bucket]
    hooks = [*noted, *when_full(buckets, send)]

    def finish():
        for hook in hooks:
            hook.remove()
        for number in range(len(sent), len(buckets)):
            for p in buckets[number]:
                if p not in ready:
                    p.grad = torch.zeros_like(p)
            send(number)
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
