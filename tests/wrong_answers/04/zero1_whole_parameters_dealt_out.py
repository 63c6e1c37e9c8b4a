"""are reduce"""

import torch
import torch.distributed as dist


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    trained = [p for bucket in buckets for p in bucket]
    masters = {n: p.detach().float() for n, p in enumerate(trained) if n // 2 % ranks == rank}
    optimizer = make_optimizer(list(masters.values()) or [torch.zeros(1)])

    def step():
        for number, p in enumerate(trained):
            gradient = torch.zeros_like(p) if p.grad is None else p.grad
            p.grad = None
            dist.reduce(gradient, number // 2 % ranks)
            if number in masters:
                masters[number].grad = gradient.float() / ranks
        optimizer.step()
        optimizer.zero_grad()
        for number, p in enumerate(trained):
            if number in masters:
                p.data.copy_(masters[number])
            dist.broadcast(p.data, number // 2 % ranks)

    return step
