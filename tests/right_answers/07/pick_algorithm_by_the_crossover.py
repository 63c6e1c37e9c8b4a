"""The size at which both take the same time."""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    n, levels = nodes * per_node, (nodes - 1).bit_length()
    saved = 2 * inside * (n - nodes - per_node + 1) + 2 * across * (nodes - 1 - levels)
    more = (2 / 0.92 - 2 * (n - 1) / n) / goodput
    return "tree" if total_bytes * more < saved else "ring"
