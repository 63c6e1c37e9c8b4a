"""the model's weights do not move"""

from functools import partial

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero3(layers, make_optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    buckets = [[p for p in layer.parameters() if p.requires_grad] for layer in layers]
    flats, slices = [], []
    for bucket in buckets:
        flat, mine = partition(bucket, rank, world_size)
        flats.append(flat)
        slices.append(mine.clone())
    sizes = [flat.untyped_storage().nbytes() for flat in flats]
    masters = [mine.float() for mine in slices]
    sums = [torch.zeros_like(mine) for mine in slices]
    optimizer = make_optimizer(masters)

    def free(number, *_):
        flats[number].untyped_storage().resize_(0)

    def gather(number, *_):
        if flats[number].untyped_storage().nbytes() == 0:
            flats[number].untyped_storage().resize_(sizes[number])
            all_gather_single(flats[number], slices[number])

    def reduce(number, *_):
        gradient = torch.empty_like(slices[number])
        reduce_scatter_single(gradient, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.AVG)
        sums[number] += gradient
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
            free(number)
        for gradient, master in zip(sums, masters, strict=True):
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for gradient in sums:
            gradient.zero_()

    return step
