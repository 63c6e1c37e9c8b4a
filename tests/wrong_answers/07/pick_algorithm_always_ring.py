"""the messages' own time is left out"""


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    return "ring"
