"""Views by `set_`; the buffer begins empty."""

import torch


def partition(parameters, rank, world_size):
    numel = 0
    for p in parameters:
        numel += p.numel()
    slice_length, rest = divmod(numel, world_size)
    slice_length += rest > 0
    flat = torch.empty(slice_length * world_size, dtype=parameters[0].dtype).fill_(0)
    offset = 0
    for p in parameters:
        values = p.detach().clone()
        p.data = torch.as_strided(flat, p.size(), values.contiguous().stride(), offset)
        p.data.copy_(values)
        offset += p.numel()
    return (flat, torch.as_strided(flat, (slice_length,), (1,), rank * slice_length))
