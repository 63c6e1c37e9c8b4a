"""only the last bucket's average comes back"""

import torch
import torch.distributed as dist


def overlap(buckets):
    works, last = [], {}

    def send(number):
        last["bucket"] = buckets[number]
        last["flat"] = torch.cat([p.grad.flatten() for p in buckets[number]])
        works.append(dist.all_reduce(last["flat"], async_op=True))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for work in works:
            work.wait()
        flat = last["flat"] / dist.get_world_size()
        for p, part in zip(last["bucket"], flat.split([p.numel() for p in last["bucket"]]), strict=True):
            p.grad.copy_(part.view_as(p))

    return finish
