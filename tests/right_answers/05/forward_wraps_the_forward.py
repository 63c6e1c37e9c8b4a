"""Each unit's `forward` is replaced by one that gathers around it."""

import torch.distributed as dist


def forward(units):
    ranks = dist.get_world_size()

    def around(unit):
        flat, mine = shard(list(unit.parameters()), dist.get_rank(), ranks)
        compute = unit.forward

        def gathered(*inputs):
            flat.untyped_storage().resize_(flat.nbytes)
            dist.all_gather(list(flat.chunk(ranks)), mine)
            outputs = compute(*inputs)
            flat.untyped_storage().resize_(0)
            return outputs

        unit.forward = gathered

    for unit in units:
        around(unit)
