"""lies in the place of part"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    parts[rank].copy_(part)
    for step in range(ranks - 1):
        sending = dist.isend(part, (rank + 1) % ranks)
        dist.recv(parts[(rank - step - 1) % ranks], (rank - 1) % ranks)
        sending.wait()
