"""Whole numbers on the wire, and a NumPy array of two."""

import numpy as np


def predict_bytes(job, strategy):
    n, g, r = job.ranks, job.per_node, job.nodes
    found = np.zeros(2)
    for p in job.parameters:
        if strategy == "hsdp":
            shard = -(-p // g)
            outer = 2 * (r - 1) * -(-shard // r)
            found += 3 * (g - 1) * shard + outer, g * outer
        else:
            sent = (3 if strategy == "fsdp" else 2) * (n - 1) * -(-p // n)
            found += sent, sent * (r > 1)
    return 4 * found
