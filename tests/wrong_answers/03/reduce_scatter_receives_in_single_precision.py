"""what is sent is float64, and the tensor that receives is float32"""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    for step in range(ranks - 1):
        take = parts[(rank - step - 2) % ranks]
        arrived = torch.empty(len(take))
        sending = dist.isend(parts[(rank - step - 1) % ranks], (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        take += arrived
    return parts[rank]
