"""the group of all ranks (FSDP) is left out"""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    sizes = [size for size in range(1, per_node + 1) if per_node % size == 0]
    sizes += [m * per_node for m in range(2, nodes + 1) if nodes % m == 0]
    whole = 2 * parameters

    def seconds(size):
        if nodes == 1:
            return 0.0
        replicas, span = nodes * per_node // size, max(1, size // per_node)
        sent, steps = 2 * (replicas - 1) / replicas * whole / span, 2 * (replicas - 1)
        if span > 1:
            sent, steps = sent + 3 * (size - 1) / size * whole, steps + 3 * (size - 1)
        return sent / goodput + steps * latency

    fitting = [size for size in sizes if 16 * parameters / size <= memory]
    if nodes > 1:
        fitting = [size for size in fitting if size < nodes * per_node]
    return min(fitting, key=lambda size: (seconds(size), -size), default=None)
