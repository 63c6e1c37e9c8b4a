"""the gradients are all-reduced"""

import torch.distributed as dist

from utils import all_gather_single


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, (flat, _), master in zip(buckets, parts, masters, strict=True):
            whole = take_gradients(bucket, flat)
            dist.all_reduce(whole, op=dist.ReduceOp.AVG)
            gradient = whole.chunk(dist.get_world_size())[dist.get_rank()]
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        gathering = []
        for (flat, mine), master in zip(parts, masters, strict=True):
            mine.copy_(master)
            gathering.append(all_gather_single(flat, mine, async_op=True))
        for work in gathering:
            work.wait()

    return step
