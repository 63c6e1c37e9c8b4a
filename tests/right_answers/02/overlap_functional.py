"""Functional collectives."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def overlap(buckets):
    sent = []

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        sent.append(funcol.all_reduce(flat, "sum", dist.group.WORLD))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for bucket, flat in zip(buckets, sent, strict=True):
            flat = funcol.wait_tensor(flat) / dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
