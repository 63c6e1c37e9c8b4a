"""The next layer is gathered while one computes, in forward and in backward."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    buckets = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    flats, slices, works = [], [], {}
    for bucket in buckets:
        flat, mine = partition(bucket, rank, ranks)
        flats.append(flat)
        slices.append(mine.clone())
        flat.untyped_storage().resize_(0)
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)
    sums = [torch.zeros_like(mine) for mine in slices]

    def begin(number):
        if 0 <= number < len(layers) and not flats[number].untyped_storage().nbytes():
            flats[number].untyped_storage().resize_(flats[number].nbytes)
            works[number] = all_gather_single(flats[number], slices[number], async_op=True)

    def finish(number):
        if number in works:
            works.pop(number).wait()

    def free(number):
        finish(number)
        flats[number].untyped_storage().resize_(0)

    def use(number, next_one):
        begin(number)
        finish(number)
        begin(next_one)

    def reduce(number):
        gradient = torch.empty_like(slices[number])
        reduce_scatter_single(gradient, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.AVG)
        sums[number] += gradient
        free(number)

    def prepare(number, layer):
        def ready(parameter):
            if all(p.grad is not None for p in buckets[number]):
                reduce(number)

        layer.register_forward_pre_hook(lambda *_: use(number, number + 1))
        layer.register_forward_hook(lambda *_: free(number))
        layer.register_full_backward_pre_hook(lambda *_: use(number, number - 1))
        for p in buckets[number]:
            p.register_post_accumulate_grad_hook(ready)

    for number, layer in enumerate(layers):
        prepare(number, layer)

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
            free(number)
        for master, total in zip(masters, sums, strict=True):
            master.grad = total.float()
        optimizer.step()
        optimizer.zero_grad()
        for mine, master, total in zip(slices, masters, sums, strict=True):
            mine.copy_(master)
            total.zero_()

    return step
