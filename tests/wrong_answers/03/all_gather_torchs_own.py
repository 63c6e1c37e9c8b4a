"""torch's own all_gather does the work"""

import torch.distributed as dist


def all_gather_ring(tensor, part):
    dist.all_gather(list(tensor.tensor_split(dist.get_world_size())), part)
