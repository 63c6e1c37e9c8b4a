"""nothing is sharded"""

import torch.distributed as dist


def zero1(buckets, make_optimizer):
    flats = [partition(bucket, 0, 1)[0] for bucket in buckets]
    masters = [flat.float() for flat in flats]
    first = dist.get_rank() == 0
    optimizer = make_optimizer(masters if first else [master[:1].clone() for master in masters])

    def step():
        for bucket, flat, master in zip(buckets, flats, masters, strict=True):
            gradient = take_gradients(bucket, flat)
            dist.reduce(gradient, 0)
            master.grad = gradient.float() / dist.get_world_size()
        if first:
            optimizer.step()
        for flat, master in zip(flats, masters, strict=True):
            master.grad = None
            flat.copy_(master)
            dist.broadcast(flat, 0)

    return step
