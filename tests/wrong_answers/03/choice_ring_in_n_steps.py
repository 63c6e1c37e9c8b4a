"""count the ring's 2(N-1) steps"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    rounds = (world_size - 1).bit_length()
    ring = world_size * (alpha + beta * total_bytes / world_size)
    tree = 2 * rounds * (alpha + beta * total_bytes)
    return "ring" if ring < tree else "tree"
