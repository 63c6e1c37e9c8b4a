"""The parameters are set onto the buffer's storage."""

import torch


def partition(parameters, rank, world_size):
    with torch.no_grad():
        vector = torch.cat([p.reshape(-1) for p in parameters])
        missing = -len(vector) % world_size
        flat = torch.nn.functional.pad(vector, (0, missing)) if missing else vector
        begin = 0
        for p in parameters:
            p.set_(flat.untyped_storage(), begin, p.shape, torch.empty(p.shape, device="meta").stride())
            begin += p.numel()
    return flat, torch.tensor_split(flat, world_size)[rank]
