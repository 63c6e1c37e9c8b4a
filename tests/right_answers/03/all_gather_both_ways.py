"""Half of the parts to the right, half to the left, at the same time."""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    parts = tensor.tensor_split(ranks)
    parts[rank].copy_(part)
    for step in range(ranks // 2):
        works = [
            dist.isend(parts[(rank - step) % ranks], right, tag=1),
            dist.irecv(parts[(rank - step - 1) % ranks], left, tag=1),
        ]
        if step < (ranks - 1) // 2:
            works.append(dist.isend(parts[(rank + step) % ranks], left, tag=2))
            works.append(dist.irecv(parts[(rank + step + 1) % ranks], right, tag=2))
        for work in works:
            work.wait()
