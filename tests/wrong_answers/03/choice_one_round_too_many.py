"""`N.bit_length()` is one more where N is a power of two"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    ring = 2 * (world_size - 1) * (alpha + beta * total_bytes / world_size)
    tree = 2 * world_size.bit_length() * (alpha + beta * total_bytes)
    return "ring" if ring < tree else "tree"
