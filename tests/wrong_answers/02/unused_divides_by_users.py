"""divided by the number of ranks that used it"""

import torch
import torch.distributed as dist


def overlap_unused(buckets):
    parameters = [p for bucket in buckets for p in bucket]
    sent = []

    def send(number):
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in buckets[number]])
        sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for number in range(len(sent), len(buckets)):
            send(number)
        used = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int32)
        dist.all_reduce(used)
        by_any = dict(zip(parameters, used.tolist(), strict=True))
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                if by_any[p]:
                    p.grad = part.view_as(p) / by_any[p]

    return finish
