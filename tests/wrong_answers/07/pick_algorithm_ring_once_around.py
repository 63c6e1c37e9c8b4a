"""the ring goes around once"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    ranks, levels = nodes * per_node, (nodes - 1).bit_length()
    ring = (ranks - nodes) * inside + (nodes - 1) * across + 2 * (ranks - 1) / ranks * total_bytes / goodput
    tree = 2 * (per_node - 1) * inside + 2 * levels * across + 2 * total_bytes / (0.92 * goodput)
    return "ring" if ring < tree else "tree"
