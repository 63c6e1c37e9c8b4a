"""Counts what is missing; a bucket is issued and not waited for until the next one is ready."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = [partition(bucket, rank, ranks) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)
    sums = [torch.zeros_like(mine) for _, mine in parts]
    waiting = []

    def finish():
        while waiting:
            number, gradient, work = waiting.pop()
            work.wait()
            sums[number].add_(gradient)

    def send(number):
        finish()
        gradient = torch.empty_like(sums[number])
        flat = take_gradients(buckets[number], parts[number][0])
        waiting.append((number, gradient, reduce_scatter_single(gradient, flat, async_op=True)))

    def watch(number, bucket):
        def hook(_):
            if not any(p.grad is None for p in bucket):
                send(number)

        for p in bucket:
            p.register_post_accumulate_grad_hook(hook)

    for number, bucket in enumerate(buckets):
        watch(number, bucket)

    def step():
        for number, bucket in enumerate(buckets):
            if not all(p.grad is None for p in bucket):
                send(number)
        finish()
        for master, total in zip(masters, sums, strict=True):
            master.grad = total.float() / ranks
            total.zero_()
        optimizer.step()
        for master, (flat, mine) in zip(masters, parts, strict=True):
            master.grad = None
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
