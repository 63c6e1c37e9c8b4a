"""in a type that holds fewer digits than float64"""

import torch
import torch.distributed as dist


def average_ring(tensor):
    narrow = tensor.float() if tensor.dtype == torch.float64 else tensor
    narrow /= dist.get_world_size()
    all_reduce_ring(narrow)
    tensor.copy_(narrow)
