"""messages are larger than a part of float16"""

import torch.distributed as dist


def average_ring(tensor):
    wide = tensor.float() if tensor.element_size() < 4 else tensor
    all_reduce_ring(wide)
    tensor.copy_(wide / dist.get_world_size())
