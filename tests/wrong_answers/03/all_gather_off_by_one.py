"""on rank 0 part 3 never arrived"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    parts[rank].copy_(part)
    for step in range(ranks - 1):
        sending = dist.isend(parts[(rank - step - 1) % ranks] if step else part, (rank + 1) % ranks)
        dist.recv(parts[(rank - step - 2) % ranks], (rank - 1) % ranks)
        sending.wait()
