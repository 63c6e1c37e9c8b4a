"""on rank 0 the last 3 elements of 51 are not summed"""

import torch.distributed as dist


def all_reduce_ring(tensor):
    ranks = dist.get_world_size()
    body = tensor[: len(tensor) // ranks * ranks]
    all_gather_ring(body, reduce_scatter_ring(body))
