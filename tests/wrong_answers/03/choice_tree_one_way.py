"""The tree's rounds lead up and down again"""


def ring_or_tree(total_bytes, world_size, alpha, beta):
    ring = 2 * (world_size - 1) * (alpha + beta * total_bytes / world_size)
    tree = (world_size - 1).bit_length() * (alpha + beta * total_bytes)
    return "ring" if ring < tree else "tree"
