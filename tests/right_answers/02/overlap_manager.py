"""A coalescing manager for each bucket."""

import torch.distributed as dist


def overlap(buckets):
    works = []

    def send(number):
        with dist._coalescing_manager(async_ops=True) as manager:
            for p in buckets[number]:
                dist.all_reduce(p.grad)
        works.append(manager)

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for work in works:
            work.wait()
        for bucket in buckets:
            for p in bucket:
                p.grad.div_(dist.get_world_size())

    return finish
