"""torch's own all_reduce does the work"""

import torch.distributed as dist


def reduce_scatter_ring(tensor):
    dist.all_reduce(tensor)
    return tensor.tensor_split(dist.get_world_size())[dist.get_rank()]
