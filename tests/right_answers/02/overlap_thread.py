"""A thread waits and copies back."""

import threading

import torch
import torch.distributed as dist


def overlap(buckets):
    threads, ranks = [], dist.get_world_size()

    def back(bucket, flat, work):
        work.wait()
        flat /= ranks
        for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad.copy_(part.view_as(p))

    def send(number):
        flat = torch.cat([p.grad.flatten() for p in buckets[number]])
        work = dist.all_reduce(flat, async_op=True)
        threads.append(threading.Thread(target=back, args=(buckets[number], flat, work)))
        threads[-1].start()

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for thread in threads:
            thread.join()

    return finish
