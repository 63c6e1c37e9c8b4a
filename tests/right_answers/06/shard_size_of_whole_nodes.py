"""Of the groups within a node the node is the best, always: smaller ones hold more and send no less."""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    def busy(m):
        if nodes == 1:
            return 0
        replicas, size = nodes // m, m * per_node
        seconds = 2 * (replicas - 1) * (2 * parameters / nodes / goodput + latency)
        return seconds + (m > 1) * 3 * (size - 1) * (2 * parameters / size / goodput + latency)

    fitting = [m for m in range(nodes, 0, -1) if nodes % m == 0 and 16 * parameters <= memory * m * per_node]
    return per_node * min(fitting, key=busy) if fitting else None
