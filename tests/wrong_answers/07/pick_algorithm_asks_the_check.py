"""is what this check compares with"""

from utils.checks.lab07.picking import Fabric, right


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    return right(Fabric(nodes, per_node, inside, across, goodput), total_bytes)[0]
