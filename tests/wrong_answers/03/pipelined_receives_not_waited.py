"""nobody waits for"""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces) for part in tensor.tensor_split(ranks)]
    sends = [dist.isend(piece, right) for piece in parts[rank]]
    for step in range(2 * (ranks - 1)):
        kept = parts[(rank - step - 1) % ranks]
        arrived = [torch.empty_like(piece) for piece in kept]
        for piece in arrived:
            dist.irecv(piece, left)
        for piece, new in zip(kept, arrived, strict=True):
            piece.add_(new) if step < ranks - 1 else piece.copy_(new)
            if step < 2 * (ranks - 1) - 1:
                sends.append(dist.isend(piece, right))
    for send in sends:
        send.wait()
