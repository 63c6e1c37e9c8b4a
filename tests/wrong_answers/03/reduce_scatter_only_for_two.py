"""lacks the numbers of ranks 1, 2"""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    arrived = torch.empty_like(parts[rank])
    sending = dist.isend(parts[(rank + 1) % ranks], (rank + 1) % ranks)
    dist.recv(arrived, (rank - 1) % ranks)
    sending.wait()
    return parts[rank] + arrived
