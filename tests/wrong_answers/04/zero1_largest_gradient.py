"""is not a single process's"""

import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    flats, slices = zip(*(partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets), strict=True)
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, flat, mine, master in zip(buckets, flats, slices, masters, strict=True):
            gradient = mine.new_empty(len(mine))
            reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.MAX)
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for flat, mine, master in zip(flats, slices, masters, strict=True):
            mine.copy_(master)
            all_gather_single(flat, mine)

    return step
