"""the numbers are divided twice: every one is 4 times too small"""

import torch.distributed as dist


def average_ring(tensor):
    tensor /= dist.get_world_size()
    all_reduce_ring(tensor)
    tensor /= dist.get_world_size()
