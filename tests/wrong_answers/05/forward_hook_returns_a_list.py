"""the hook `lambda` returns a list, which takes the place of the module's output: return None"""

from functools import partial

import torch.distributed as dist

from utils import all_gather_single


def forward(units):
    parts = [shard(list(unit.parameters()), dist.get_rank(), dist.get_world_size()) for unit in units]

    def gather(number, *_):
        flat, mine = parts[number]
        flat.untyped_storage().resize_(flat.nbytes)
        all_gather_single(flat, mine)

    for number, unit in enumerate(units):
        unit.register_forward_pre_hook(partial(gather, number))
        unit.register_forward_hook(lambda *_, number=number: [parts[number][0].untyped_storage().resize_(0)])
