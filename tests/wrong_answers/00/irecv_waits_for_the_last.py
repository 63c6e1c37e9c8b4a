"""nobody waits for the 1st of 3 recv"""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine, got = tensor.clone(), [torch.zeros_like(tensor) for _ in range(ranks - 1)]
    sends = [dist.isend(mine, (rank + step) % ranks) for step in range(1, ranks)]
    for step, each in enumerate(got, start=1):
        last = dist.irecv(each, (rank - step) % ranks)
    last.wait()
    for send in sends:
        send.wait()
    tensor += sum(got)
