"""Steps counted one by one."""

import math


def pick_algorithm(total_bytes, nodes, per_node, inside, across, goodput):
    n = nodes * per_node
    around = sum(across if (rank + 1) // per_node % nodes != rank // per_node else inside for rank in range(n))
    first = across if nodes > 1 else inside
    seconds = {
        "ring": 2 * (around - first) + 2 * total_bytes * (1 - 1 / n) / goodput,
        "tree": 2 * (math.ceil(math.log2(nodes)) * across + (per_node - 1) * inside + total_bytes / 0.92 / goodput),
    }
    return min(seconds, key=seconds.get)
