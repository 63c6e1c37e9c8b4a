"""A `.grad` that is not None may be an earlier micro-batch's"""

import torch
import torch.distributed as dist


def overlap(buckets):
    sent = []

    def hook(_):
        while len(sent) < len(buckets) and all(p.grad is not None for p in buckets[len(sent)]):
            flat = torch.cat([p.grad.flatten() for p in buckets[len(sent)]])
            sent.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = [p.register_post_accumulate_grad_hook(hook) for bucket in buckets for p in bucket]

    def finish():
        for hook in hooks:
            hook.remove()
        for bucket, (flat, work) in zip(buckets, sent, strict=True):
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))

    return finish
