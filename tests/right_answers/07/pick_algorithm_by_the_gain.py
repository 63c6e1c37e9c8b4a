"""What the tree saves in messages, beside what its bytes cost more."""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    levels = 0
    while 2**levels < nodes:
        levels += 1
    saved = 2 * inside * (per_node - 1) * (nodes - 1) + 2 * across * (nodes - 1 - levels)
    dearer = 2 * total_bytes / goodput * (1 / 0.92 - 1 + 1 / (nodes * per_node))
    return ("ring", "tree")[saved > dearer]
