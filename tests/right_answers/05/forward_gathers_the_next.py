"""The next unit's gather is issued when one has computed."""

from functools import partial

import torch.distributed as dist

from utils import all_gather_single


def forward(units):
    parts = [shard(list(unit.parameters()), dist.get_rank(), dist.get_world_size()) for unit in units]
    works = {}

    def begin(number):
        if number < len(units) and number not in works:
            flat, mine = parts[number]
            flat.untyped_storage().resize_(flat.nbytes)
            works[number] = all_gather_single(flat, mine, async_op=True)

    def before(number, *_):
        begin(number)
        works.pop(number).wait()

    def after(number, *_):
        begin(number + 1)
        parts[number][0].untyped_storage().resize_(0)

    for number, unit in enumerate(units):
        unit.register_forward_pre_hook(partial(before, number))
        unit.register_forward_hook(partial(after, number))
