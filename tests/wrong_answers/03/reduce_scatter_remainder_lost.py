"""on 51 elements, 4 ranks: rank 0 returns a tensor of shape (12,), where part 0 of `tensor_split` has 13 elements"""

import torch
import torch.distributed as dist


def reduce_scatter_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor[: len(tensor) // ranks * ranks].view(ranks, -1)
    for step in range(ranks - 1):
        give, take = parts[(rank - step - 1) % ranks], parts[(rank - step - 2) % ranks]
        arrived = torch.empty_like(take)
        sending = dist.isend(give, (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        take += arrived
    return parts[rank]
