"""under HSDP a pass is counted as the whole"""


def predict_bytes(job, strategy):
    n, g, r, size = job.ranks, job.per_node, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * size + 2 * size / g, 2 * size if r > 1 else 0
    moved = (3 if strategy == "fsdp" else 2) * (n - 1) / n * size
    return moved, moved if r > 1 else 0
