"""Pieces flow through all levels at once: 2 S, not 2 S log2 R"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    ranks, levels = nodes * per_node, (nodes - 1).bit_length()
    ring = 2 * (ranks - nodes) * inside + 2 * (nodes - 1) * across + 2 * (ranks - 1) / ranks * total_bytes / goodput
    tree = 2 * (per_node - 1) * inside + 2 * levels * across + 2 * levels * total_bytes / (0.92 * goodput)
    return "ring" if ring < tree else "tree"
