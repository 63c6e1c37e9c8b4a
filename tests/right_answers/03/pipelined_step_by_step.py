"""Begins the receives of a step when the one before is over."""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces) for part in tensor.tensor_split(ranks)]
    sends = [dist.isend(piece, right) for piece in parts[rank]]
    steps = 2 * (ranks - 1)
    for step in range(steps):
        adding = step < ranks - 1
        kept = parts[(rank - step - 1) % ranks]
        arriving = [torch.empty_like(piece) for piece in kept] if adding else kept
        receives = [dist.irecv(piece, left) for piece in arriving]
        for piece, arrived, receive in zip(kept, arriving, receives, strict=True):
            receive.wait()
            if adding:
                piece += arrived
            if step < steps - 1:
                sends.append(dist.isend(piece, right))
    for send in sends:
        send.wait()
