"""rank 0 returns no part of the sum: it holds rank 0's numbers alone"""

import torch.distributed as dist


def reduce_scatter_ring(tensor):
    return tensor.tensor_split(dist.get_world_size())[dist.get_rank()]
