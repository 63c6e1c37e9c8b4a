"""the ring's steps inside the nodes are left out"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    ranks = nodes * per_node
    ring = 0 * inside + 2 * (nodes - 1) * across + 2 * (ranks - 1) / ranks * total_bytes / goodput
    tree = 2 * (per_node - 1) * inside + 2 * (nodes - 1).bit_length() * across + 2 * total_bytes / (0.92 * goodput)
    return "ring" if ring < tree else "tree"
