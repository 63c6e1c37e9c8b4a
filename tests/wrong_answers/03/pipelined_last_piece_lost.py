"""on rank 0 no part of 4 is the sum"""

import torch
import torch.distributed as dist


def all_reduce_pipelined(tensor, pieces):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = [part.tensor_split(pieces)[: max(1, pieces - 1)] for part in tensor.tensor_split(ranks)]
    for step in range(2 * (ranks - 1)):
        sends = [dist.isend(piece, right) for piece in parts[(rank - step) % ranks]]
        for piece in parts[(rank - step - 1) % ranks]:
            new = torch.empty_like(piece)
            dist.recv(new, left)
            piece.add_(new) if step < ranks - 1 else piece.copy_(new)
        for send in sends:
            send.wait()
