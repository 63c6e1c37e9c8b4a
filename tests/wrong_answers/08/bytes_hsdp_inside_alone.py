"""a rank's bytes under HSDP are those inside the node alone"""


def predict_bytes(job, strategy):
    n, g, r, size = job.ranks, job.per_node, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * (g - 1) / g * size, 2 * (r - 1) / r * size
    moved = (3 if strategy == "fsdp" else 2) * (n - 1) / n * size
    return moved, moved if r > 1 else 0
