"""a pass is counted as the whole"""


def predict_bytes(job, strategy):
    g, r, size = job.per_node, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * (g - 1) / g * size + 2 * (r - 1) / r * size / g, 2 * (r - 1) / r * size
    moved = (3 if strategy == "fsdp" else 2) * size
    return moved, moved if r > 1 else 0
