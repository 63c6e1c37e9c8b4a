"""a message holds the whole tensor"""

import torch
import torch.distributed as dist


def all_reduce_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    passing = tensor.clone()
    for _ in range(ranks - 1):
        arrived = torch.empty_like(tensor)
        sending = dist.isend(passing, (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        tensor += arrived
        passing = arrived
