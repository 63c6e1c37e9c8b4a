"""the parameters are no views of `flat`"""


def partition(parameters, rank, world_size):
    numel = sum(p.numel() for p in parameters)
    length = -(-numel // world_size)
    flat = parameters[0].new_zeros(world_size * length, requires_grad=False)
    begin = 0
    for p in parameters:
        flat[begin : begin + p.numel()] = p.detach().flatten()
        begin += p.numel()
    return flat, flat[rank * length : (rank + 1) * length]
