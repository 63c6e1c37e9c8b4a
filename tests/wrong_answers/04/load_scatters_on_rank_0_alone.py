"""all ranks must issue the same ones in the same order"""

import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def scattered(whole, length):
        mine = whole.new_empty(length)
        if rank == 0:
            padded = whole.new_zeros(ranks * length)
            padded[: whole.numel()] = whole
            dist.scatter(mine, list(padded.chunk(ranks)))
        return mine

    for number, bucket in enumerate(buckets):
        master, whole = optimizer.param_groups[0]["params"][number], checkpoint["masters"][number]
        master.data.copy_(scattered(whole, master.numel()))
        optimizer.state[master] = {
            name: scattered(value, master.numel()) if value.shape == whole.shape else value.clone()
            for name, value in checkpoint["moments"][number].items()
        }
        for p, part in zip(bucket, whole.split([p.numel() for p in bucket]), strict=True):
            p.data.copy_(part.view_as(p))
        dist.barrier()
