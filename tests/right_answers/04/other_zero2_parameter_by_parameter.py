"""Every parameter's gradient goes at once, whatever its bucket does."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero2(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    class Shard:
        def __init__(self, parameter):
            self.parameter = parameter
            self.flat, self.mine = partition([parameter], rank, ranks)
            self.master = self.mine.float()
            self.sum = None
            parameter.register_post_accumulate_grad_hook(self.collect)

        def collect(self, parameter):
            gradient = torch.empty_like(self.mine)
            reduce_scatter_single(gradient, take_gradients([parameter], self.flat), op=dist.ReduceOp.AVG)
            self.sum = gradient if self.sum is None else self.sum.add_(gradient)

    shards = [Shard(p) for bucket in buckets for p in bucket]
    optimizer = make_optimizer([shard.master for shard in shards])

    def step():
        for shard in shards:
            shard.master.grad = None if shard.sum is None else shard.sum.float()
            shard.sum = None
        optimizer.step()
        optimizer.zero_grad()
        for shard in shards:
            shard.mine.copy_(shard.master)
            all_gather_single(shard.flat, shard.mine)

    return step
