"""your function returns nothing"""


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    pass
