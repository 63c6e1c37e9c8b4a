"""a rank waits for all pieces of a part before it passes the first one on"""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces) for part in tensor.tensor_split(ranks)]
    for step in range(2 * (ranks - 1)):
        sends = [dist.isend(piece, right) for piece in parts[(rank - step) % ranks]]
        arrived = [torch.empty_like(piece) for piece in parts[(rank - step - 1) % ranks]]
        for receive in [dist.irecv(piece, left) for piece in arrived]:
            receive.wait()
        for piece, new in zip(parts[(rank - step - 1) % ranks], arrived, strict=True):
            piece.add_(new) if step < ranks - 1 else piece.copy_(new)
        for send in sends:
            send.wait()
