"""holds its own numbers times 4"""

import torch.distributed as dist


def all_reduce(tensor):
    tensor *= dist.get_world_size()
