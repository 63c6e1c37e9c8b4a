"""rank 0 sends 3.00 S where the ring needs 0.75 S: a message holds the whole tensor"""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    total, passing = tensor.clone(), tensor.clone()
    for _ in range(ranks - 1):
        arrived = torch.empty_like(tensor)
        sending = dist.isend(passing, (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        total += arrived
        passing = arrived
    return total.tensor_split(ranks)[rank]
