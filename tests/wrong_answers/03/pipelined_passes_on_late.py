"""a rank waits for several pieces of a part before it passes the first one on"""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces) for part in tensor.tensor_split(ranks)]
    sends = [dist.isend(piece, right) for piece in parts[rank]]
    for step in range(2 * (ranks - 1)):
        kept = parts[(rank - step - 1) % ranks]
        arriving = [torch.empty_like(piece) for piece in kept]
        receives = [dist.irecv(piece, left) for piece in arriving]
        for receive in receives[:-1]:
            receive.wait()
        for number, (piece, arrived) in enumerate(zip(kept, arriving, strict=True)):
            if number == pieces - 1:
                receives[-1].wait()
            piece.add_(arrived) if step < ranks - 1 else piece.copy_(arrived)
            if step < 2 * (ranks - 1) - 1:
                sends.append(dist.isend(piece, right))
    for send in sends:
        send.wait()
