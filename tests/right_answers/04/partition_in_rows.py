"""The buffer is made as one row for each rank."""


def partition(parameters, rank, world_size):
    sizes = [p.numel() for p in parameters]
    rows = parameters[0].detach().new_zeros(world_size, (sum(sizes) + world_size - 1) // world_size)
    flat = rows.flatten()
    *parts, _ = flat.split([*sizes, flat.numel() - sum(sizes)])
    for p, part in zip(parameters, parts, strict=True):
        part.view(p.shape)[...] = p.detach()
        p.data = part.view(p.shape)
    return flat, flat.view(rows.shape)[rank]
