"""the smallest group that fits is taken"""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    sizes = [size for size in range(1, per_node + 1) if per_node % size == 0]
    sizes += [m * per_node for m in range(2, nodes + 1) if nodes % m == 0]
    fitting = [size for size in sizes if 16 * parameters / size <= memory]
    return min(fitting, default=None)
