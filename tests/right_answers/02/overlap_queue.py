"""The hooks only count; a queue without threads sends what has its turn."""

from collections import deque

import torch
import torch.distributed as dist


def overlap(buckets):
    queue = deque(enumerate(buckets))
    missing = {p: number for number, bucket in enumerate(buckets) for p in bucket}
    sent = []

    def hook(parameter):
        del missing[parameter]
        while queue and queue[0][0] not in missing.values():
            _, bucket = queue.popleft()
            flat = torch._utils._flatten_dense_tensors([p.grad for p in bucket])
            sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    hooks = [p.register_post_accumulate_grad_hook(hook) for p in missing]

    def finish():
        for handle in hooks:
            handle.remove()
        for bucket, flat, work in sent:
            work.wait()
            for p, part in zip(bucket, torch._utils._unflatten_dense_tensors(flat, bucket), strict=True):
                p.grad = part / dist.get_world_size()

    return finish
