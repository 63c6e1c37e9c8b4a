"""A class for each bucket; collectives are issued ahead of their use."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


class Bucket:
    def __init__(self, parameters):
        self.parameters = parameters
        self.flat, self.mine = partition(parameters, dist.get_rank(), dist.get_world_size())
        self.master = self.mine.float()

    def reduce(self):
        self.gradient = torch.empty_like(self.mine)
        whole = take_gradients(self.parameters, self.flat)
        self.work = reduce_scatter_single(self.gradient, whole, op=dist.ReduceOp.AVG, async_op=True)

    def take(self):
        self.work.wait()
        self.master.grad = self.gradient.float()
        self.gradient = self.work = None

    def gather(self):
        self.master.grad = None
        self.mine.copy_(self.master)
        return all_gather_single(self.flat, self.mine, async_op=True)


def zero1(buckets, make_optimizer):
    mine = [Bucket(parameters) for parameters in buckets]
    optimizer = make_optimizer([bucket.master for bucket in mine])

    def step():
        before = None
        for bucket in mine:
            bucket.reduce()
            if before is not None:
                before.take()
            before = bucket
        before.take()
        optimizer.step()
        for work in [bucket.gather() for bucket in mine]:
            work.wait()

    return step
