"""the mean is returned, but the tensor still holds"""

import torch.distributed as dist


def average_ring(tensor):
    tensor = tensor / dist.get_world_size()
    all_reduce_ring(tensor)
    return tensor
