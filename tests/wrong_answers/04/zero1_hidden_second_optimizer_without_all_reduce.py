"""past `make_optimizer`"""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    trained = [p for bucket in buckets for p in bucket]
    masters = [p.detach().float() for p in trained]
    shown = make_optimizer([torch.zeros(1)])
    optimizer = type(shown)(masters, **shown.defaults)
    parts = [partition(bucket, dist.get_rank(), dist.get_world_size()) for bucket in buckets]

    def step():
        means = []
        for bucket, (flat, mine) in zip(buckets, parts, strict=True):
            gradient, whole = torch.empty_like(mine), torch.empty_like(flat)
            reduce_scatter_single(gradient, take_gradients(bucket, flat), op=dist.ReduceOp.AVG)
            all_gather_single(whole, gradient)
            means += whole[: sum(p.numel() for p in bucket)].split([p.numel() for p in bucket])
        for master, mean in zip(masters, means, strict=True):
            master.grad = mean.float().view_as(master)
        optimizer.step()
        optimizer.zero_grad()
        for p, master in zip(trained, masters, strict=True):
            p.data.copy_(master)

    return step
