"""the bytes are left out"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    return "tree"
