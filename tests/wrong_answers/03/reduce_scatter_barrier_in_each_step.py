"""torch's collectives are not for you"""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    for step in range(ranks - 1):
        take = parts[(rank - step - 2) % ranks]
        arrived = torch.empty_like(take)
        sending = dist.isend(parts[(rank - step - 1) % ranks], (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        take += arrived
        dist.barrier()
    return parts[rank]
