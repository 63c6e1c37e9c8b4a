"""which is 2 S for large N alone"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    ring = 2 * (world_size - 1) * alpha + 2 * total_bytes * beta
    tree = 2 * (world_size - 1).bit_length() * (alpha + beta * total_bytes)
    return "ring" if ring < tree else "tree"
