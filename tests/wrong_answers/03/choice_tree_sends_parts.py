"""the tree sends S in each round"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    rounds = (world_size - 1).bit_length()
    ring = 2 * (world_size - 1) * (alpha + beta * total_bytes / world_size)
    tree = 2 * rounds * (alpha + beta * total_bytes / 2)
    return "ring" if ring < tree else "tree"
