"""each loss is divided already"""

from functools import partial

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    flats, slices = zip(*(partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets), strict=True)
    masters = [mine.float() for mine in slices]
    gradients = [mine.new_zeros(len(mine)) for mine in slices]
    optimizer = make_optimizer(masters)
    times = [0] * len(buckets)

    def reduce(number):
        received = slices[number].new_empty(len(slices[number]))
        reduce_scatter_single(received, take_gradients(buckets[number], flats[number]), op=dist.ReduceOp.AVG)
        gradients[number] += received
        times[number] += 1

    def full(number, _):
        if all(p.grad is not None for p in buckets[number]):
            reduce(number)

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(partial(full, number))

    def step():
        for number, bucket in enumerate(buckets):
            if any(p.grad is not None for p in bucket):
                reduce(number)
            masters[number].grad = gradients[number].float() / max(1, times[number])
        optimizer.step()
        optimizer.zero_grad()
        for number, (flat, mine, master) in enumerate(zip(flats, slices, masters, strict=True)):
            mine.copy_(master)
            all_gather_single(flat, mine)
            gradients[number].zero_()
            times[number] = 0

    return step
