"""are broadcast"""

from functools import partial

import torch
import torch.distributed as dist

from utils import reduce_scatter_single


def zero3(layers, make_optimizer):
    buckets = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    first = dist.get_rank() == 0
    flats, kept, slices = [], [], []
    for bucket in buckets:
        flat, mine = partition(bucket, dist.get_rank(), dist.get_world_size())
        flats.append(flat)
        slices.append(mine.clone())
        kept.append(flat.clone() if first else None)
        flat.untyped_storage().resize_(0)
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)
    gradients = [torch.zeros_like(mine) for mine in slices]

    def gather(number, *_):
        flat = flats[number]
        if flat.untyped_storage().nbytes() == 0:
            flat.untyped_storage().resize_(flat.nbytes)
            if first:
                flat.copy_(kept[number])
            dist.broadcast(flat, 0)

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
        layer.register_full_backward_pre_hook(partial(gather, number))
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
        for number, (mine, master, gradient) in enumerate(zip(slices, masters, gradients, strict=True)):
            mine.copy_(master)
            gradient.zero_()
            parts = list(kept[number].chunk(dist.get_world_size())) if first else None
            dist.gather(mine, parts)

    return step
