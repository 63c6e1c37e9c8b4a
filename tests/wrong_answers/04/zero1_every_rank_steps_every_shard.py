"""nothing is sharded"""

import torch.distributed as dist


def zero1(buckets, make_optimizer):
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]
    masters = [flat.float() for flat, _ in parts]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, (flat, _), master in zip(buckets, parts, masters, strict=True):
            gradient = take_gradients(bucket, flat)
            dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
            master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for (flat, _), master in zip(parts, masters, strict=True):
            flat.copy_(master)

    return step
