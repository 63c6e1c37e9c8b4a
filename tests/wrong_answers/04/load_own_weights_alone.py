"""has loaded its own slice alone"""

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
        alone = whole.new_zeros(world_size * master.numel())
        alone[rank * master.numel() : (rank + 1) * master.numel()] = slice_of(whole, master.numel())
        begin = 0
        for p in bucket:
            p.data.copy_(alone[begin : begin + p.numel()].view_as(p))
            begin += p.numel()
