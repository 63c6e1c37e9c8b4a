"""torch's fully_shard does the work"""

import torch.distributed.fsdp


def root(model, units, make_optimizer):
    for unit in units[::-1]:
        torch.distributed.fsdp.fully_shard(unit)
    torch.distributed.fsdp.fully_shard(model)
    return make_optimizer(list(model.parameters())).step
