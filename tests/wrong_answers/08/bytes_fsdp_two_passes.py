"""FSDP is counted with two passes"""


def predict_bytes(job, strategy):
    n, g, r, size = job.ranks, job.per_node, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * (g - 1) / g * size + 2 * (r - 1) / r * size / g, 2 * (r - 1) / r * size
    moved = {"ddp": 2 * (n - 1) / n * size, "zero1": 2 * (n - 1) / n * size, "fsdp": 2 * (n - 1) / n * size}[strategy]
    return moved, moved if r > 1 else 0
