"""the groups to choose from are"""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    sizes = list(range(1, nodes * per_node + 1))
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
    return min(fitting, key=lambda size: (seconds(size), -size), default=None)
