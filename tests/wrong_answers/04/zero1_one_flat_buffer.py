"""copies of too much at once"""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    trained = [p for bucket in buckets for p in bucket]
    flat, mine = partition(trained, dist.get_rank(), dist.get_world_size())
    master = mine.float()
    optimizer = make_optimizer([master])

    def step():
        gradient = torch.empty_like(mine)
        reduce_scatter_single(gradient, take_gradients(trained, flat), op=dist.ReduceOp.AVG)
        master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        mine.copy_(master)
        all_gather_single(flat, mine)

    return step
