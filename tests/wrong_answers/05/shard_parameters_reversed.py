"""`mine` is not slice 0 of all numbers"""


def shard(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = parameters[0].new_zeros(world_size * length, requires_grad=False)
    begin = 0
    for p in reversed(parameters):
        part = flat[begin : begin + p.numel()]
        part.copy_(p.detach().flatten())
        p.data = part.view_as(p)
        begin += p.numel()
    mine = flat[rank * length : (rank + 1) * length].clone()
    flat.untyped_storage().resize_(0)
    return flat, mine
