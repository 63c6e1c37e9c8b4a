"""A class for each bucket, which keeps a set of what it waits for."""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


class Bucket:
    def __init__(self, parameters):
        self.parameters, self.waiting = parameters, set(parameters)
        self.flat, self.mine = partition(parameters, dist.get_rank(), dist.get_world_size())
        self.master, self.gradient = self.mine.float(), None
        for p in parameters:
            p.register_post_accumulate_grad_hook(self.arrived)

    def arrived(self, p):
        self.waiting.discard(p)
        if not self.waiting:
            self.reduce()

    def reduce(self):
        self.waiting = set(self.parameters)
        received = torch.empty_like(self.mine)
        whole = take_gradients(self.parameters, self.flat).div_(dist.get_world_size())
        reduce_scatter_single(received, whole)
        if self.gradient is None:
            self.gradient = received
        else:
            self.gradient += received


def zero2(buckets, make_optimizer):
    mine = [Bucket(parameters) for parameters in buckets]
    optimizer = make_optimizer([bucket.master for bucket in mine])

    def step():
        for bucket in mine:
            if len(bucket.waiting) < len(bucket.parameters):
                bucket.reduce()
            if bucket.gradient is not None:
                bucket.master.grad, bucket.gradient = bucket.gradient.float(), None
        optimizer.step()
        optimizer.zero_grad()
        for bucket in mine:
            bucket.mine.copy_(bucket.master)
            all_gather_single(bucket.flat, bucket.mine)

    return step
