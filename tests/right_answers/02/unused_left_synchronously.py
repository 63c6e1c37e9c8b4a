"""What is left is all-reduced after backward, one after the other."""

import torch
import torch.distributed as dist


def overlap_unused(buckets):
    done = []

    def flat_of(bucket):
        return torch.cat([p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in bucket])

    def send(number):
        flat = flat_of(buckets[number])
        done.append((flat, dist.all_reduce(flat, async_op=True)))

    hooks = when_full(buckets, send)

    def finish():
        for hook in hooks:
            hook.remove()
        for bucket in buckets[len(done) :]:
            flat = flat_of(bucket)
            dist.all_reduce(flat)
            done.append((flat, None))
        for bucket, (flat, work) in zip(buckets, done, strict=True):
            if work:
                work.wait()
            for p, part in zip(bucket, (flat / dist.get_world_size()).split([p.numel() for p in bucket]), strict=True):
                p.grad = part.view_as(p).clone()

    return finish
