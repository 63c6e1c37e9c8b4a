"""HSDP's gathers are counted as crossing"""


def predict_bytes(job, strategy):
    n, g, r, size = job.ranks, job.per_node, job.nodes, sum(job.sizes)
    passes = 3 if strategy == "fsdp" else 2
    moved = passes * (n - 1) / n * size
    if strategy == "hsdp":
        moved = 3 * (g - 1) / g * size + 2 * (r - 1) / r * size / g
    return moved, moved if r > 1 else 0
