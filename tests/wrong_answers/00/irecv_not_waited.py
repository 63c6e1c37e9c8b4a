"""nobody waits for recv"""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine, got = tensor.clone(), [torch.zeros_like(tensor) for _ in range(ranks - 1)]
    for step, each in enumerate(got, start=1):
        dist.irecv(each, (rank - step) % ranks)
    for step in range(1, ranks):
        dist.send(mine, (rank + step) % ranks)
    tensor += sum(got)
