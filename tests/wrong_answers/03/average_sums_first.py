"""it became infinite before it was divided. Divide first, then add"""

import torch.distributed as dist


def average_ring(tensor):
    all_reduce_ring(tensor)
    tensor /= dist.get_world_size()
