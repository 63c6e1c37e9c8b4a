"""A counter for each bucket; gradients are scaled before they are summed."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    ranks = dist.get_world_size()
    parts = [partition(bucket, dist.get_rank(), ranks) for bucket in buckets]
    masters = [mine.detach().to(torch.float32) for _, mine in parts]
    optimizer = make_optimizer(iter(masters))
    sums = [mine.new_zeros(mine.shape) for _, mine in parts]
    arrived = dict.fromkeys(range(len(buckets)), 0)

    def reduce(number):
        arrived[number] = 0
        whole = torch.zeros_like(parts[number][0])
        at = 0
        for p in buckets[number]:
            if p.grad is not None:
                whole[at : at + p.numel()].view_as(p).copy_(p.grad)
                p.grad = None
            at += p.numel()
        whole /= ranks
        gradient = sums[number].new_empty(sums[number].shape)
        reduce_scatter_single(gradient, whole)
        sums[number].add_(gradient)

    def hook_of(number):
        def hook(parameter):
            arrived[number] += 1
            if arrived[number] == len(buckets[number]):
                reduce(number)

        return hook

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(hook_of(number))

    @torch.no_grad()
    def step():
        for number in [number for number, count in arrived.items() if count]:
            reduce(number)
        for number, master in enumerate(masters):
            master.grad = sums[number].float()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for number, (flat, mine) in enumerate(parts):
            sums[number] = torch.zeros_like(mine)
            mine.copy_(masters[number])
            all_gather_single(flat, mine)

    return step
