"""the slices are gathered in the wrong order, the last rank's first"""

from functools import partial

import torch.distributed as dist


def forward(units):
    parts = [shard(list(unit.parameters()), dist.get_rank(), dist.get_world_size()) for unit in units]

    def gather(number, *_):
        flat, mine = parts[number]
        flat.untyped_storage().resize_(flat.nbytes)
        dist.all_gather(list(flat.chunk(dist.get_world_size()))[::-1], mine)

    def free(number, *_):
        parts[number][0].untyped_storage().resize_(0)

    for number, unit in enumerate(units):
        unit.register_forward_pre_hook(partial(gather, number))
        unit.register_forward_hook(partial(free, number))
