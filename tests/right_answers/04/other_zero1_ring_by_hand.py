"""Both collectives as rings of sends, as in lab 03; a sum on the way is in bf16, as the numbers that travel are."""

import torch
import torch.distributed as dist


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def exchange(outgoing):
        incoming = torch.empty_like(outgoing)
        works = [dist.isend(outgoing, (rank + 1) % ranks), dist.irecv(incoming, (rank - 1) % ranks)]
        for work in works:
            work.wait()
        return incoming

    def reduce_scatter(whole):
        rows = whole.view(ranks, -1)
        carried = rows[(rank - 1) % ranks].clone()
        for away in range(2, ranks + 1):
            carried = exchange(carried) + rows[(rank - away) % ranks]
        return carried

    def all_gather(whole):
        rows = whole.view(ranks, -1)
        for step in range(ranks - 1):
            rows[(rank - step - 1) % ranks] = exchange(rows[(rank - step) % ranks])

    parts = [partition(bucket, rank, ranks) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, (flat, _), master in zip(buckets, parts, masters, strict=True):
            master.grad = reduce_scatter(take_gradients(bucket, flat)).float() / ranks
        optimizer.step()
        optimizer.zero_grad()
        for (flat, mine), master in zip(parts, masters, strict=True):
            mine.copy_(master)
            all_gather(flat)

    return step
