"""the rest that N does not divide, never move"""

import torch
import torch.distributed as dist

from utils import all_gather_single, reduce_scatter_single


def zero1(buckets, make_optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    flats, slices = [], []
    for bucket in buckets:
        flat, _ = partition(bucket, 0, 1)
        flats.append(flat)
        slices.append(flat[: flat.numel() // ranks * ranks].chunk(ranks)[rank] if flat.numel() >= ranks else flat[:0])
    masters = [mine.float() for mine in slices]
    optimizer = make_optimizer(masters)

    def step():
        for bucket, flat, master in zip(buckets, flats, masters, strict=True):
            whole = take_gradients(bucket, flat)[: ranks * master.numel()]
            if master.numel():
                gradient = torch.empty_like(whole[: master.numel()])
                reduce_scatter_single(gradient, whole, op=dist.ReduceOp.AVG)
                master.grad = gradient.float()
        optimizer.step()
        optimizer.zero_grad()
        for flat, mine, master in zip(flats, slices, masters, strict=True):
            if master.numel():
                mine.copy_(master)
                all_gather_single(flat[: ranks * master.numel()], mine)

    return step
