"""return 'ring' or 'tree'"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    pass
