"""at 0.92 of `goodput` they take longer: divide by 0.92"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    ranks, levels = nodes * per_node, (nodes - 1).bit_length()
    ring = 2 * (ranks - nodes) * inside + 2 * (nodes - 1) * across + 2 * (ranks - 1) / ranks * total_bytes / goodput
    tree = 2 * (per_node - 1) * inside + 2 * levels * across + 0.92 * 2 * total_bytes / goodput
    return "ring" if ring < tree else "tree"
