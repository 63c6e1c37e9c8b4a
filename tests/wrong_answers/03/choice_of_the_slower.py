"""each choice is the slower one of the two"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    rounds = (world_size - 1).bit_length()
    ring = 2 * (world_size - 1) * (alpha + beta * total_bytes / world_size)
    tree = 2 * rounds * (alpha + beta * total_bytes)
    return "tree" if ring < tree else "ring"
