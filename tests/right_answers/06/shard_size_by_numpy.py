"""All sizes at once in arrays; what is returned is numpy's number."""

import numpy as np


def shard_size(parameters, nodes, per_node, memory, goodput, latency):
    ranks, s = nodes * per_node, 2 * parameters
    sizes = np.array([g for g in range(ranks, 0, -1) if (g % per_node == 0 and ranks % g == 0) or per_node % g == 0])
    sizes = sizes[16 * parameters / sizes <= memory]
    if not len(sizes):
        return None
    replicas = ranks / sizes
    sent = 2 * (replicas - 1) / replicas * s * np.minimum(1, per_node / sizes)
    steps = 2 * (replicas - 1)
    several = sizes > per_node
    sent = sent + several * 3 * (sizes - 1) / sizes * s
    steps = steps + several * 3 * (sizes - 1)
    seconds = (sent / goodput + steps * latency) * (nodes > 1)
    return sizes[np.argmin(seconds)]
