"""operations carry 3 buckets: send a bucket's gradients as one tensor"""

import torch.distributed as dist


def overlap(buckets):
    works = []

    def send(number):
        works.extend(dist.all_reduce(p.grad, async_op=True) for p in buckets[number])

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for work in works:
            work.wait()
        for bucket in buckets:
            for p in bucket:
                p.grad /= dist.get_world_size()

    return finish
