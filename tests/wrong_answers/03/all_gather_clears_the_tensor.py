"""Here `part` shares the memory of `tensor`"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = tensor.tensor_split(ranks)
    tensor.zero_()
    parts[rank].copy_(part)
    for step in range(ranks - 1):
        sending = dist.isend(parts[(rank - step) % ranks], (rank + 1) % ranks)
        dist.recv(parts[(rank - step - 1) % ranks], (rank - 1) % ranks)
        sending.wait()
