"""HSDP is counted as FSDP"""


def predict_bytes(job, strategy):
    n, r, size = job.ranks, job.nodes, sum(job.sizes)
    if strategy == "hsdp":
        return 3 * (n - 1) / n * size, 3 * (n - 1) / n * size if r > 1 else 0
    moved = {"ddp": 2 * (n - 1) / n * size, "zero1": 2 * (n - 1) / n * size, "fsdp": 3 * (n - 1) / n * size}[strategy]
    return moved, moved if r > 1 else 0
