"""on rank 0 parts 1, 2, 3 never arrived"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    tensor.tensor_split(dist.get_world_size())[dist.get_rank()].copy_(part)
