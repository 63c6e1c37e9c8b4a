"""have become float32 where they were bfloat16"""

import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()

    def slice_of(whole, length):
        padded = whole.new_zeros(world_size * length)
        padded[: whole.numel()] = whole
        return padded[rank * length : (rank + 1) * length].clone()

    for number, bucket in enumerate(buckets):
        master, whole = optimizer.param_groups[0]["params"][number], checkpoint["masters"][number]
        master.data.copy_(slice_of(whole, master.numel()))
        optimizer.state[master] = {
            name: slice_of(value, master.numel()) if value.shape == whole.shape else value.clone()
            for name, value in checkpoint["moments"][number].items()
        }
        for p, part in zip(bucket, whole.split([p.numel() for p in bucket]), strict=True):
            p.data = part.view_as(p).clone()
