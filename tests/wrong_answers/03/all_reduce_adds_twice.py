"""has the numbers of"""

import torch
import torch.distributed as dist


def all_reduce_ring(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    for step in range(2 * (ranks - 1)):
        take = parts[(rank - step - 1) % ranks]
        arrived = torch.empty_like(take)
        sending = dist.isend(parts[(rank - step) % ranks], (rank + 1) % ranks)
        dist.recv(arrived, (rank - 1) % ranks)
        sending.wait()
        take += arrived  # also in the second half, which should copy
