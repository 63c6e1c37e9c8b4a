"""4 does not divide 51"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor[: len(tensor) // ranks * ranks].view(ranks, -1)
    parts[rank].copy_(part)
    for step in range(ranks - 1):
        sending = dist.isend(parts[(rank - step) % ranks], (rank + 1) % ranks)
        dist.recv(parts[(rank - step - 1) % ranks], (rank - 1) % ranks)
        sending.wait()
