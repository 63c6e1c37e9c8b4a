"""Padded by torch's pad."""

import torch
import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    slices = optimizer.param_groups[0]["params"]

    def own(whole, mine):
        missing = world_size * mine.numel() - whole.numel()
        padded = torch.nn.functional.pad(whole, (0, missing))
        return padded.chunk(world_size)[rank].clone()

    for number, (bucket, mine) in enumerate(zip(buckets, slices, strict=True)):
        whole = checkpoint["masters"][number]
        mine.detach().copy_(own(whole, mine))
        optimizer.state[mine] = {
            name: own(value, mine) if value.shape == whole.shape else value.clone()
            for name, value in checkpoint["moments"][number].items()
        }
        begin = 0
        for p in bucket:
            p.data.copy_(whole[begin : begin + p.numel()].view_as(p))
            begin += p.numel()
