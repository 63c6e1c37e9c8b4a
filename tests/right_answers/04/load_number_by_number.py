"""Slices by index: what lies beyond the end is zero."""

import torch
import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank = dist.get_rank()
    slices = optimizer.param_groups[0]["params"]
    for bucket, mine, whole, moments in zip(buckets, slices, checkpoint["masters"], checkpoint["moments"], strict=True):
        begin = rank * mine.numel()
        here = whole[begin : begin + mine.numel()]
        mine.data.zero_()
        mine.data[: len(here)] = here
        for name, value in moments.items():
            if value.shape == whole.shape:
                part = torch.zeros_like(mine)
                part[: len(here)] = value[begin : begin + mine.numel()]
                optimizer.state[mine][name] = part
            else:
                optimizer.state[mine][name] = torch.tensor(value.item())
        for p, part in zip(bucket, torch.split(whole, [p.numel() for p in bucket]), strict=True):
            p.data[...] = part.view(p.shape).to(p.dtype)
