"""begin where a slice of 4 ranks begins"""

import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank = dist.get_rank()

    def slice_of(whole, length):
        padded = whole.new_zeros(4 * length)
        begin = rank * -(-whole.numel() // 4)
        padded[: whole.numel()] = whole
        return padded[begin : begin + length].clone()

    for number, bucket in enumerate(buckets):
        master, whole = optimizer.param_groups[0]["params"][number], checkpoint["masters"][number]
        master.data.copy_(slice_of(whole, master.numel()))
        optimizer.state[master] = {
            name: slice_of(value, master.numel()) if value.shape == whole.shape else value.clone()
            for name, value in checkpoint["moments"][number].items()
        }
        for p, part in zip(bucket, whole.split([p.numel() for p in bucket]), strict=True):
            p.data.copy_(part.view_as(p))
