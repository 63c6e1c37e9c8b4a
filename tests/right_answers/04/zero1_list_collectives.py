"""An optimizer for each bucket, collectives on lists of tensors, all issued before the first is waited for."""

import torch
import torch.distributed as dist


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    state = []
    for bucket in buckets:
        flat, mine = partition(bucket, rank, ranks)
        master = mine.clone().float()
        state.append((bucket, flat, master, make_optimizer([master])))

    def step():
        issued = []
        for bucket, flat, _, _ in state:
            gradient = torch.zeros(flat.numel() // ranks, dtype=flat.dtype)
            given = list(take_gradients(bucket, flat).chunk(ranks))
            issued.append((gradient, dist.reduce_scatter(gradient, given, async_op=True)))
        gathering = []
        for (gradient, work), (_, flat, master, optimizer) in zip(issued, state, strict=True):
            work.wait()
            master.grad = gradient.float().div_(ranks)
            optimizer.step()
            optimizer.zero_grad()
            new = master.to(flat.dtype)
            gathering.append(dist.all_gather(list(flat.chunk(ranks)), new, async_op=True))
        for work in gathering:
            work.wait()

    return step
