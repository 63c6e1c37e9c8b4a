"""too many layers at once"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    buckets = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    flats, slices = [], []
    for bucket in buckets:
        flat, mine = partition(bucket, dist.get_rank(), dist.get_world_size())
        flats.append(flat)
        slices.append(mine.clone())
        flat.untyped_storage().resize_(0)
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)
    gradients = [torch.zeros_like(mine) for mine in slices]

    def gather(number, *_):
        flat = flats[number]
        if flat.untyped_storage().nbytes() == 0:
            flat.untyped_storage().resize_(flat.nbytes)
            all_gather_single(flat, slices[number])

    def gather_all(*_):
        for number in range(len(layers)):
            gather(number)

    def free(number, *_):
        flats[number].untyped_storage().resize_(0)

    def reduce(number):
        gradient = torch.empty_like(slices[number])
        reduce_scatter_single(gradient, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.AVG)
        gradients[number] += gradient
        free(number)

    def ready(number, _):
        if all(p.grad is not None for p in buckets[number]):
            reduce(number)

    for number, layer in enumerate(layers):
        layer.register_forward_pre_hook(partial(gather, number))
        layer.register_forward_hook(partial(free, number))
        layer.register_full_backward_pre_hook(gather_all if layer is layers[-1] else partial(gather, number))
        for p in buckets[number]:
            p.register_post_accumulate_grad_hook(partial(ready, number))

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
            free(number)
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for mine, master, gradient in zip(slices, masters, gradients, strict=True):
            mine.copy_(master)
            gradient.zero_()

    return step
