"""nothing has computed yet, and the weights of unit"""

import torch.distributed as dist

from utils import all_gather_single


def forward(units):
    parts = [shard(list(unit.parameters()), dist.get_rank(), dist.get_world_size()) for unit in units]
    for flat, mine in parts:
        flat.untyped_storage().resize_(flat.nbytes)
        all_gather_single(flat, mine)
