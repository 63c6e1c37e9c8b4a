"""Some are sent in fp32"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    buckets = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    flats, slices = zip(*(partition(bucket, rank, world_size) for bucket in buckets), strict=True)
    slices = [mine.clone() for mine in slices]
    masters = [mine.float() for mine in slices]
    gradients = [torch.zeros_like(mine) for mine in slices]
    optimizer = make_optimizer(masters)

    def free(number, *_):
        flats[number].untyped_storage().resize_(0)

    def gather(number, *_):
        flat = flats[number]
        flat.untyped_storage().resize_(flat.nbytes)
        whole = torch.empty(len(flat))
        all_gather_single(whole, masters[number])
        flat.copy_(whole)

    def reduce(number):
        received = torch.empty_like(slices[number])
        reduce_scatter_single(received, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.AVG)
        gradients[number] += received
        free(number)

    def ready(number, _):
        if all(p.grad is not None for p in buckets[number]):
            reduce(number)

    for number, layer in enumerate(layers):
        free(number)
        layer.register_forward_pre_hook(partial(gather, number))
        layer.register_forward_hook(partial(free, number))
        layer.register_full_backward_pre_hook(partial(gather, number))
        for p in buckets[number]:
            p.register_post_accumulate_grad_hook(partial(ready, number))

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
            masters[number].grad = gradients[number].float()
        optimizer.step()
        optimizer.zero_grad()
        for mine, master, gradient in zip(slices, masters, gradients, strict=True):
            mine.copy_(master)
            gradient.zero_()

    return step
