"""Begins the receives of every step before the first send."""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces) for part in tensor.tensor_split(ranks)]
    steps = 2 * (ranks - 1)
    kept = [parts[(rank - step - 1) % ranks] for step in range(steps)]
    arrived = [[torch.empty_like(piece) for piece in pieces_of_step] for pieces_of_step in kept]
    receives = [[dist.irecv(piece, left) for piece in new] for new in arrived]
    sends = [dist.isend(piece, right) for piece in parts[rank]]
    for step in range(steps):
        for piece, new, receive in zip(kept[step], arrived[step], receives[step], strict=True):
            receive.wait()
            if step < ranks - 1:
                piece += new
            else:
                piece.copy_(new)
            if step < steps - 1:
                sends.append(dist.isend(piece, right))
    for send in sends:
        send.wait()
