"""every rank holds rank 0's numbers"""

import torch.distributed as dist


def all_reduce(tensor):
    dist.broadcast(tensor, src=0)
