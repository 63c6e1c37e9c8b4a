"""the bytes are left out"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    ranks, levels = nodes * per_node, (nodes - 1).bit_length()
    ring = 2 * (ranks - nodes) * inside + 2 * (nodes - 1) * across
    tree = 2 * (per_node - 1) * inside + 2 * levels * across
    return "ring" if ring < tree else "tree"
