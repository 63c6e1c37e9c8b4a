"""One pass from the largest group down."""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    n = nodes * per_node
    chosen, least = None, float("inf")
    for size in range(n, 0, -1):
        in_node, of_nodes = per_node % size == 0, size % per_node == 0 and n % size == 0
        if not (in_node or of_nodes) or 16 * parameters > memory * size:
            continue
        replicas = n // size
        passes, steps = 2 * (1 - size / n), 2 * (replicas - 1)
        if size > per_node:
            passes = passes * per_node / size + 3 * (1 - 1 / size)
            steps += 3 * (size - 1)
        time = passes * 2 * parameters / goodput + steps * latency if nodes > 1 else 0
        if time < least:
            chosen, least = size, time
    return chosen
