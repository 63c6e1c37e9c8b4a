"""rank 0 holds the sum of ranks 0, 1 alone"""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    other, theirs = dist.get_rank() ^ 1, torch.empty_like(tensor)
    if other < dist.get_world_size():
        both = [dist.P2POp(dist.isend, tensor, other), dist.P2POp(dist.irecv, theirs, other)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        tensor += theirs
