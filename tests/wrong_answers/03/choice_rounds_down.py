"""yours are rounded down"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    rounds = world_size.bit_length() - 1
    ring = 2 * (world_size - 1) * (alpha + beta * total_bytes / world_size)
    tree = 2 * rounds * (alpha + beta * total_bytes)
    return "ring" if ring < tree else "tree"
