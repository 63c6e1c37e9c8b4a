"""all ranks send to rank 0, and it sends to all"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    if rank == 0:
        parts[0].copy_(part)
        for other in range(1, ranks):
            dist.recv(parts[other], other)
        for other in range(1, ranks):
            dist.send(tensor, other)
    else:
        dist.send(part, 0)
        dist.recv(tensor, 0)
