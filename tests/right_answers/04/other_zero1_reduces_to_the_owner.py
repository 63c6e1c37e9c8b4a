"""Each slice is reduced to its owner and broadcast by it, as the ZeRO paper has it. The optimizer is made late."""

from functools import partial

import torch.distributed as dist


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = [partition(bucket, rank, ranks) for bucket in buckets]
    masters = [mine.float() for _, mine in parts]
    made = []

    def take_a_step(ranks):
        if not made:
            made.append(make_optimizer(masters))
        for bucket, (flat, _), master in zip(buckets, parts, masters, strict=True):
            pieces = take_gradients(bucket, flat).chunk(ranks)
            for owner, piece in enumerate(pieces):
                dist.reduce(piece, owner)
            master.grad = pieces[rank].float() / ranks
        made[0].step()
        made[0].zero_grad()
        for (flat, mine), master in zip(parts, masters, strict=True):
            mine.copy_(master)
            for owner, piece in enumerate(flat.chunk(ranks)):
                dist.broadcast(piece, owner)

    return partial(take_a_step, ranks)
